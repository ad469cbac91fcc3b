// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"strings"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/fleet"
)

// addProposalHint adds to an error of a proposal for package pkg what the user can do.
func addProposalHint(err error, pkg string) error {
	var problem *fleet.ProposalError
	if !errors.As(err, &problem) {
		return err
	}
	switch problem.Problem {
	case fleet.ProblemNoInstalls:
		return exit.Hint(err, "see what runs with `fleet scan`")
	case fleet.ProblemNoSelector:
		return exit.Hint(err, suggestSelector(problem))
	case fleet.ProblemSeveralCatalogs:
		return exit.Hint(err, "set --catalog to one of "+strings.Join(problem.Catalogs, ", "))
	case fleet.ProblemNoCatalog:
		return exit.Hint(err, "import it with `bellwether catalog init ./ladders --package "+pkg+
			" --from CATALOG`, and publish that catalog; `fleet scan` names the CATALOG that the clusters use")
	case fleet.ProblemConfigNotReported:
		return exit.Hint(err, "write spec.install.config of the ManagedOperator by hand, and set spec.adopt there")
	case fleet.ProblemDifferentConfigs:
		return exit.Hint(err,
			"adopt each group with a --name and a --selector of its own, or make the settings equal first")
	default:
		return err
	}
}

// suggestSelector returns the hint which clusters the user can select.
func suggestSelector(problem *fleet.ProposalError) string {
	switch {
	case problem.Label != "":
		return "set --selector " + problem.Label + ", which exactly these have; or --all-clusters"
	case problem.EveryCluster:
		return "set --all-clusters: all clusters of the fleet have it"
	}
	return "set --selector to labels of these clusters (bellwether fleet list -o wide shows labels), or --all-clusters"
}
