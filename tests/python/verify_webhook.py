"""Verifies a Standard Webhook from standard input with code that is not ours.

The input is JSON: the secret, the headers and the body. Prints the body, read as JSON. The exit
code is 1 unless the signature is valid.
"""

import json
import sys

from standardwebhooks import Webhook

given = json.load(sys.stdin)
json.dump(Webhook(given["secret"]).verify(given["body"], given["headers"]), sys.stdout)
