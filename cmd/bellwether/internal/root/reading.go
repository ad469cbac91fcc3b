// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
)

// showsHubState has for each command whether it shows data of the hub. Such a command prints when the hub was last
// seen if this was long ago, because then its data is older than it looks. Other commands change objects or do not
// read the hub. The command doctor has its own check.
var showsHubState = map[string]bool{
	"backup create": false, "backup list": true, "backup restore": false, "backup show": true, "backup verify": false,
	"boilerplate check": false, "boilerplate eject": false, "boilerplate fleet status": false,
	"boilerplate fleet update": false, "boilerplate init": false, "boilerplate list": false,
	"boilerplate push": false, "boilerplate status": false, "boilerplate update": false,
	"bundle build": false, "bundle diff": false, "bundle init": false, "bundle lint": false, "bundle push": false,
	"bundle scorecard": false, "bundle try": false,
	"catalog add": false, "catalog block": false, "catalog compile": false, "catalog deprecate": false,
	"catalog diff": true, "catalog get": true, "catalog graph": true, "catalog init": false, "catalog keygen": false,
	"catalog list": true, "catalog promote": false, "catalog publish": false, "catalog push": false,
	"catalog retire": false, "catalog serve": false, "catalog show": false, "catalog unblock": false,
	"catalog verify": false, "catalog vulnerabilities": true,
	"dashboards list": false, "dashboards write": false,
	"demo":                false,
	"docs":                false,
	"doctor":              false,
	"fleet compatibility": true, "fleet freeze": false, "fleet get": true, "fleet join": false,
	"fleet join-discovered": false, "fleet list": true, "fleet remove": false, "fleet revoke": false,
	"fleet scan":               true,
	"fleet unfreeze":           false,
	"install hub":              false,
	"oncall handover":          true,
	"operator adopt":           true,
	"operator approve":         false,
	"operator confirm-removal": false, "operator get": true, "operator init": false, "operator list": true,
	"operator release-hold": false, "operator repair": false, "operator resume": false,
	"page explain": false, "page lint": true, "page preview": true, "page runbook": false, "page test": false,
	"query":          false,
	"registry serve": false,
	"rollout abort":  false, "rollout approve": false, "rollout get": true, "rollout history": true,
	"rollout override": false, "rollout override-windows": false, "rollout pause": false, "rollout plan": true,
	"rollout restart": false, "rollout resume": false, "rollout retry": false, "rollout rollback": false,
	"rollout status": true,
	"silence create": false, "silence end": false, "silence list": true,
	"slo edge-config": false, "slo generate": false, "slo get": true, "slo list": false, "slo simulate": false,
	"slo test":       false,
	"support-bundle": false,
	"version":        false,
	"versions":       true,
	"why":            true,
}

// addAgeWarnings makes each subcommand of c that shows data of the hub warn about old data. path is the path of c.
func addAgeWarnings(env *command.Env, c *cobra.Command, path ...string) {
	for _, child := range c.Commands() {
		childPath := append(path[:len(path):len(path)], child.Name())
		if showsHubState[strings.Join(childPath, " ")] {
			env.WarnOfOldState(child)
		}
		addAgeWarnings(env, child, childPath...)
	}
}
