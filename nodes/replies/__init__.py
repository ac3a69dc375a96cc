"""Read the value that a model's reply states: text in, value or ``ReplyError`` out; pure, and linear in its length.

All readers share the same steps (``statements``): whose words the reply's reasoning tags, objects and passages are is
decided first, and a reader's grammar then finds all statements of a value in what is left. Each statement has a
strength, by how clearly its form says that it is the verdict; the last of the strongest counts.

scores                     the grammars of one score,
pairs, votes               of a score for each of two answers, of a preference for one of them
statements                 the steps, the ladder of strengths, what is wrong with a reply that states nothing usable,
                           and whether one declares NO ISSUE
vocabulary                 what scores and answers are called, and how numbers are written
words.toml, patterns.toml  the words by which replies are read, and the forms in which these stand
steps                      a list of evaluation steps

Whose words are they:

shown                      the texts that an agent was shown
json_fields                which objects state a value
own_words                  a reply without reasoning, quotations and markup
provenance                 which statements are the agent's own, and which it reprints, reports or disowns
"""

from ...state.errors import ReplyError as ReplyError
from .own_words import LONGEST_READ_WHOLE as LONGEST_READ_WHOLE
from .pairs import read_pair as read_pair
from .scores import read_score as read_score
from .shown import Shown as Shown
from .statements import contains_no_issue as contains_no_issue
from .statements import declares_no_issue as declares_no_issue
from .votes import read_vote as read_vote
