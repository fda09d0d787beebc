"""What a person or a model would type, and the tools that would be a good answer.

Written before the search was, from the names and first sentences of the tools; not changed to please it. Weights were
chosen by the first half alone; how the other (`HELD_OUT`) fared query by query was not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and every tool that answers it: the end of `server/tool`."""

    query: str
    answers: tuple[str, ...]

    def accepts(self, server: str, tool: str) -> bool:
        """Whether this tool is one of the answers."""
        return any(f"{server}/{tool}".endswith(answer) for answer in self.answers)


_QUESTIONS = """
open a new bug report on github | server-github/create_issue
create issue gitlab | server-gitlab/create_issue
list open pull requests | server-github/list_pull_requests
merge a PR | server-github/merge_pull_request
what files changed in this pull request | server-github/get_pull_request_files
comment on an issue | server-github/add_issue_comment
find repositories about machine learning | server-github/search_repositories server-gitlab/search_repositories
fork repo | server-github/fork_repository server-gitlab/fork_repository
search source code across repositories | server-github/search_code
create a merge request | server-gitlab/create_merge_request
are the CI checks passing on the pull request | server-github/get_pull_request_status
commit several files at once | server-github/push_files server-gitlab/push_files
read a file from disk | server-filesystem/read_text_file server-filesystem/read_file
rename a file | server-filesystem/move_file
list files in folder | server-filesystem/list_directory server-filesystem/list_directory_with_sizes server-filesystem/directory_tree
find files by pattern | server-filesystem/search_files
how big is this file and when was it modified | server-filesystem/get_file_info
make a directory | server-filesystem/create_directory
replace lines in a text file | server-filesystem/edit_file
read an image file as base64 | server-filesystem/read_media_file
which directories may I access | server-filesystem/list_allowed_directories
what is the current time in Tokyo | server-time/get_current_time
convert time between time zones | server-time/convert_time
download a web page | server-fetch/fetch
fetch url as markdown | server-fetch/fetch
show uncommitted changes | server-git/git_diff_unstaged server-git/git_diff_staged server-git/git_status server-git/git_diff
git history | server-git/git_log
stage files for commit | server-git/git_add
switch to another branch | server-git/git_checkout
undo staging | server-git/git_reset
run a select query on the database | server-sqlite/read_query
insert rows into sqlite | server-sqlite/write_query
table schema | server-sqlite/describe_table airtable-mcp-server/describe_table
what tables exist in the database | server-sqlite/list_tables airtable-mcp-server/list_tables
send a message to a slack channel | server-slack/slack_post_message
reply in thread | server-slack/slack_reply_to_thread
add emoji reaction | server-slack/slack_add_reaction
recent messages in a channel | server-slack/slack_get_channel_history
look up a slack user's profile | server-slack/slack_get_user_profile
store a fact in the knowledge graph | server-memory/create_entities server-memory/add_observations server-memory/create_relations
remove entities from memory | server-memory/delete_entities
link two entities | server-memory/create_relations
take a screenshot of the web page | chrome-devtools-mcp/take_screenshot server-puppeteer/puppeteer_screenshot
click a button | chrome-devtools-mcp/click server-puppeteer/puppeteer_click
fill in a form | chrome-devtools-mcp/fill_form chrome-devtools-mcp/fill server-puppeteer/puppeteer_fill
run javascript in the browser | chrome-devtools-mcp/evaluate_script server-puppeteer/puppeteer_evaluate
network requests made by the page | chrome-devtools-mcp/list_network_requests chrome-devtools-mcp/get_network_request
open a new browser tab | chrome-devtools-mcp/new_page
record performance trace | chrome-devtools-mcp/performance_start_trace
console errors | chrome-devtools-mcp/list_console_messages chrome-devtools-mcp/get_console_message
find memory leaks | chrome-devtools-mcp/take_heapsnapshot
simulate slow network | chrome-devtools-mcp/emulate
accessibility audit | chrome-devtools-mcp/lighthouse_audit
library documentation and code examples | context7-mcp/query-docs
add a todo | todoist-mcp/create_tasks
mark task as done | todoist-mcp/close_tasks
tasks due today | todoist-mcp/get_tasks_by_filter todoist-mcp/get_tasks_list
which tasks did I finish last week | todoist-mcp/get_completed_tasks
move task to another section | todoist-mcp/move_tasks
delete a label | todoist-mcp/delete_labels todoist-mcp/remove_shared_labels
who collaborates on this project | todoist-mcp/get_collaborators
list airtable bases | airtable-mcp-server/list_bases
update a record | airtable-mcp-server/update_records
attach a file to a record | airtable-mcp-server/upload_attachment
build ios app for the simulator | xcodebuildmcp/build_sim xcodebuildmcp/build_run_sim
run unit tests on the simulator | xcodebuildmcp/test_sim
code coverage | xcodebuildmcp/get_coverage_report xcodebuildmcp/get_file_coverage
list available simulators | xcodebuildmcp/list_sims
bundle identifier of an app | xcodebuildmcp/get_app_bundle_id
draw a chart from spreadsheet data | excel-mcp-server/create_chart
pivot table | excel-mcp-server/create_pivot_table
read cells from excel sheet | excel-mcp-server/read_range
remove duplicate rows | excel-mcp-server/transform_range
highlight cells above a threshold | excel-mcp-server/add_conditional_format
dropdown list in a cell | excel-mcp-server/add_data_validation
convert csv to excel | excel-mcp-server/import_csv
freeze the top row | excel-mcp-server/set_sheet_layout
add a comment to a cell | excel-mcp-server/set_note
get all fields of a hash | redis-mcp-server/hgetall
set key to expire | redis-mcp-server/expire
number of keys in redis | redis-mcp-server/dbsize
append to a redis list | redis-mcp-server/rpush
publish message to channel | redis-mcp-server/publish
vector similarity search | redis-mcp-server/vector_search_hash redis-mcp-server/hybrid_search
acknowledge stream entries | redis-mcp-server/xack
top scores from sorted set | redis-mcp-server/zrange
check an n8n workflow for mistakes | n8n-mcp/validate_workflow
workflow templates | n8n-mcp/search_templates n8n-mcp/get_template
add two numbers | server-everything/get-sum
compress a file | server-everything/gzip-file-as-resource
environment variables | server-everything/get-env
think through a problem step by step | server-sequential-thinking/sequentialthinking
screnshot | chrome-devtools-mcp/take_screenshot server-puppeteer/puppeteer_screenshot xcodebuildmcp/screenshot
create pul reqest | server-github/create_pull_request
"""  # noqa: E501  # a question to a line


def _read(text: str) -> tuple[Question, ...]:
    rows = [line.split(" | ") for line in text.strip().splitlines()]
    return tuple(Question(query, tuple(answers.split())) for query, answers in rows)


QUESTIONS = _read(_QUESTIONS)
TUNED_ON = QUESTIONS[::2]
HELD_OUT = QUESTIONS[1::2]
