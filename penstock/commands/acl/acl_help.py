"""ACL HELP.

Tests: cases commands/test_compatibility.
"""

from penstock.commands.common.help import declare_help
from penstock.engine.table.command_table import container

container("ACL", group="server", since="6.0.0", summary="Commands for users and their rights.")

declare_help(
    "ACL",
    "6.0.0",
    [
        ("CAT [<category>]", "List the categories, or the commands of <category>."),
        ("DELUSER <username> [<username> ...]", "Remove users, and close their connections."),
        ("DRYRUN <username> <command> [<arg> ...]", "Test whether <username> may run a command, without running it."),
        ("GETUSER <username>", "Describe a user."),
        ("GENPASS [<bits>]", "Generate a password of 256 bits, or of <bits>."),
        ("LIST", "List the users with their rules."),
        ("LOAD", "Replace all users by those in the ACL file."),
        ("LOG [<count> | RESET]", "List refused logins and requests, or clear the list."),
        ("SAVE", "Write all users into the ACL file."),
        (
            "SETUSER <username> [<rule> ...]",
            "Create a user, or change its rules: on, off, nopass, resetpass, reset,\n"
            "><password>, <<password>, #<hash>, !<hash>, ~<pattern>, %R~<pattern>,\n"
            "%W~<pattern>, &<pattern>, +<command>, -<command>, +@<category>,\n"
            "-@<category>, allkeys, resetkeys, allchannels, resetchannels,\n"
            "allcommands, nocommands, (<rule> ...), clearselectors.",
        ),
        ("USERS", "List the users' names."),
        ("WHOAMI", "Return the name of this connection's user."),
    ],
)
