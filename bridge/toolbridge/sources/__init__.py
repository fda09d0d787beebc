"""Sources of servers besides configuration files: plugins, tasks, prompt sections; and the merge of all."""
