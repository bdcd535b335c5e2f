"""Prints the template with everything that is optional, and with all expressions resolved.

checkov silently skips what it cannot resolve: a policy with an `!If` in it is not checked.
"""

import json
import os

from template import EVERYTHING, REGION, Stack


def resolved(stack: Stack) -> dict:
    """Returns a stack's template, with every condition decided and every reference replaced."""
    resources = {
        name: {
            "Type": one["Type"],
            "Metadata": stack.value(one.get("Metadata", {})),
            "Properties": stack.properties(name),
        }
        for name, one in stack.resources.items()
    }
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


if __name__ == "__main__":
    # The transform requires a region; nothing is sent anywhere.
    os.environ.setdefault("AWS_DEFAULT_REGION", REGION)
    print(json.dumps(resolved(Stack(**EVERYTHING)), indent=1))
