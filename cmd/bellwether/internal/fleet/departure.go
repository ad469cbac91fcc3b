// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/controllers/fleet/plan"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// departure is what the removal of a cluster from the fleet does.
type departure struct {
	cluster *v1alpha1.FleetCluster
	// operators are the names of its OperatorInstalls, sorted.
	operators []string
	// backups is the number of its OperatorBackups.
	backups int
	policy  v1alpha1.RemovalPolicy
	timeout time.Duration
}

// departures looks up what the removal of clusters does.
func departures(ctx context.Context, h *hub.Client, clusters []v1alpha1.FleetCluster,
	o *removeOptions) ([]departure, error) {
	var out []departure
	for i := range clusters {
		c := &clusters[i]
		in := client.InNamespace(v1alpha1.ClusterNamespace(c.Name))
		installs, backups := &v1alpha1.OperatorInstallList{}, &v1alpha1.OperatorBackupList{}
		if err := h.List(ctx, installs, in); err != nil {
			return nil, fmt.Errorf("list the operators of cluster %s: %w", c.Name, err)
		}
		if err := h.List(ctx, backups, in); err != nil {
			return nil, fmt.Errorf("list the backups of cluster %s: %w", c.Name, err)
		}
		d := departure{cluster: c, backups: len(backups.Items), timeout: offboardingTimeout(c, o),
			policy: cmp.Or(v1alpha1.RemovalPolicy(o.offboarding), c.Spec.Offboarding, v1alpha1.RemovalOrphan)}
		for j := range installs.Items {
			d.operators = append(d.operators, installs.Items[j].Name)
		}
		slices.Sort(d.operators)
		out = append(out, d)
	}
	return out, nil
}

// String says it in one line.
func (d departure) String() string {
	text := d.cluster.Name + ": " + d.operatorsText()
	if d.backups > 0 {
		text += fmt.Sprintf("; the records of %s are deleted on the hub, and the files stay in their store",
			phrase.Count(d.backups, "backup"))
	}
	if !meta.IsStatusConditionTrue(d.cluster.Status.Conditions, v1alpha1.ConditionOnline) {
		text += fmt.Sprintf("; it is offline, and leaves %s after the deletion at the latest", d.timeout)
	}
	return text
}

func (d departure) operatorsText() string {
	count := len(d.operators)
	does := phrase.Word(count, "stays installed, and is no longer managed", "stay installed, and are no longer managed")
	switch d.policy {
	case v1alpha1.RemovalUninstall:
		does = phrase.Word(count, "is uninstalled", "are uninstalled")
	case v1alpha1.RemovalRestore:
		does += ", and what was adopted gets its Subscription back as it was before"
	}
	if count == 0 {
		return "no operators"
	}
	text := fmt.Sprintf("%s %s: %s", phrase.Count(count, "operator"), does, phrase.First(d.operators, maxNamed))
	if d.policy.NeedsAgent() && rollouts.ObserveCluster(d.cluster).IsLeftAlone() {
		verb, stay := "uninstalled", "installed"
		if d.policy == v1alpha1.RemovalRestore {
			verb, stay = "put back", "as they are"
		}
		text += fmt.Sprintf("; it is paused, and nothing is %s while it is: after %s they stay %s", verb, d.timeout,
			stay)
	}
	return text
}

// maxNamed keeps lines short enough to read.
const maxNamed = 10

// loss says what the removal of clusters does, and what is lost by it.
func loss(all []departure) string {
	var out strings.Builder
	what, each := "these "+phrase.Count(len(all), "cluster"), "each"
	if len(all) == 1 {
		what, each = "cluster "+all[0].cluster.Name, "it"
	}
	fmt.Fprintf(&out, "This removes %s from the fleet, and cannot be taken back:\n", what)
	for _, d := range all[:min(len(all), maxListed)] {
		fmt.Fprintf(&out, "  %s\n", d)
	}
	if more := len(all) - maxListed; more > 0 {
		fmt.Fprintf(&out, "  and %d more, which --dry-run lists\n", more)
	}
	fmt.Fprintf(&out, "The hub deletes the agent's access, its reports and the history of %s. Custom resources and "+
		"their definitions stay there.\n", each)
	return out.String()
}

// maxListed is how many clusters a question lists.
const maxListed = 20

func offboardingTimeout(c *v1alpha1.FleetCluster, o *removeOptions) time.Duration {
	switch {
	case o.offboardingTimeout != nil:
		return *o.offboardingTimeout
	case c.Spec.OffboardingTimeout != nil:
		return c.Spec.OffboardingTimeout.Duration
	}
	return plan.DefaultOffboardingTimeout
}
