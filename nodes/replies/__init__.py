"""Reads the value of a model's reply: text in, value or ``ReplyError`` out.

Pure and linear in time.

A value is read from statement lines: lines of the agent's own words that contain one requested form
and nothing else. Prose is never read, in any language. Anything else raises ``ReplyError``, so that
the agent is asked again.

One grammar per file:

scores, pairs, votes   a score, a score for each of two answers, a preference for one of them
declarations           whether a critic declares NO ISSUE
steps                  a list of evaluation steps
rules                  recorded replies to other prompts, by the rules of their formats

Shared parts:

statements             from a raw reply to its statement lines, or to the error if it has none
vocabulary             labels, numbers, names of the two texts; words.toml has the label words

Origin of words:

shown                  the texts that the agent was shown
json_fields            the objects that state a value
own_words              a reply without reasoning, quotations and markup
provenance             the agent's own statements, and those that it repeats, reports or disowns
"""

from ...state.errors import ReplyError as ReplyError
from .declarations import contains_no_issue as contains_no_issue
from .declarations import declares_no_issue as declares_no_issue
from .own_words import LONGEST_READ_WHOLE as LONGEST_READ_WHOLE
from .pairs import read_pair as read_pair
from .rules import RULES as RULES
from .rules import Rule as Rule
from .scores import read_score as read_score
from .shown import Shown as Shown
from .votes import read_vote as read_vote
