// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

var update = flag.Bool("update", false, "write the golden files")

const reference = `# Metrics

Names and labels are constants in ` + "`alerts/series`" + `, from which this page is made; exporters, rules and dashboards share them.
[SLIs and series](slo.md) says which of them rules read, and what those record.

## Agents

Each agent serves these at ` + "`/metrics`" + ` on port 8080, beside those of controller-runtime and of [probes](slo.md#series-that-the-rules-read). All
have the label ` + "`cluster`" + ` too, with the FleetCluster's name. ` + "`operator_namespace`" + ` and ` + "`operator`" + ` are the namespace and the name of the
ManagedOperator on the hub; only both together identify an operator. ` + "`namespace`" + ` is the namespace that the operator runs in on the
cluster. Scrape with ` + "`honor_labels`" + `, as the chart's PodMonitor does, so that Prometheus does not replace it by the agent's namespace.

%s
- ` + "`outcome`" + ` is succeeded or failed. An admission counts once, by how it ended first: with its CSV Succeeded, or with the install Stalled
  because OLM could not resolve, unpack or carry out what was admitted, or because the CSV is Failed or misses requirements. An agent
  that starts counts nothing of what has ended before; an ending in the moment between two agents is not counted at all.
- ` + "`upgrading`" + ` is 1 while an admission has not succeeded, for at most 10 minutes from the latest of the admission, the newest of the
  operator's CSVs and, at first, the Subscription. So every hop has its own 10 minutes, and waiting before OLM begins uses none. In
  the first installation on a cluster there are no series of Deployments in this time, nor of a catalog that is not ready yet.
- ` + "`ready`" + ` is true, false or unknown, by the conditions Stalled, Ready and Available, in this order. Resources younger than 5 minutes are
  left out. Those without any of these conditions, those whose status is older than their spec, and those that have been going for
  more than 5 minutes are unknown.
- ` + "`reason`" + ` is forbidden, too_many or failed. Every minute an agent counts the first 5,000 resources of each of the first 30 kinds that
  an operator's CSV owns; counts outlive a failure to count again by 5 minutes.
- ` + "`name`" + ` is a webhook's name as API servers have it: the ` + "`generateName`" + ` of its definition. Conversion webhooks are left out.
- There are at most 50 Deployments, 50 webhooks, 50 volume claims and 20 conditions of an operator.
- ` + "`release`" + ` is the beginning of the hash of a release, 12 hexadecimal digits: that of the admitted release if its version is installed,
  otherwise that of the release before, and empty if neither is known. A release that changes only the configuration has the same
  ` + "`version`" + ` and another ` + "`release`" + `.

Gauges are read from the agent's caches at the time of the scrape, and custom resources are listed apart from it: a scrape waits for
nothing, and a series goes with its object. An agent whose cluster's API server has not answered for 2 minutes tells no more than what is
expected; ` + "`BellwetherSLIAbsent`" + ` is for that.

### What an agent may count

The cluster's role ` + "`view`" + ` lets the agent list the resources of operators, because OLM adds them to it; the chart binds it
(` + "`agent.bindView`" + `). Without it, or for kinds that OLM does not add, label a ClusterRole:

` + "```yaml" + `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: count-echo-servers
  labels: {bellwether.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [echo.example.com], resources: [echoservers], verbs: [list]}
` + "```" + `

## Hub

The hub serves these in the same way. Only the leader does.

%s
- ` + "`state`" + ` of the fleet's clusters is online, offline, hibernating, never_joined, or revoked where the agent's access to the hub was revoked; of an
  operator's selected, updated, ready or offline; of a rollout's and a wave's pending, in_progress, succeeded, failed, deferred or removed;
  of a cluster's installs ready or not_ready; of a change event Sending, Sent, Waiting, Refused, GivenUp or Unknown.
- ` + "`from`" + ` is the version that most of the clusters ran that the rollout admitted and that are on no later rollout, "several versions" if
  none was run by more than half, and empty if nothing ran there before. ` + "`kind`" + ` is rollout, rollback or automatic rollback. ` + "`wave`" + ` of
  ` + "`bellwether_rollout_change_start_timestamp_seconds`" + ` is the current one, and ` + "`approved_by`" + ` the user name of who approved a wave last.
- ` + "`bellwether_slo_budget_excluded`" + ` has the first 128 characters of the silence's reason in ` + "`reason`" + `. Where the silence names no
  clusters, there is also a series without ` + "`cluster`" + `, for SLIs that are not by cluster.
- The hub also exports ` + "`bellwether_operator_expected`" + ` of all clusters, so that an operator is missed where the agent is silent.

Gauges are read from the hub's cache at the time of the scrape, so they are as fresh as what the hub decides on, and a series goes with
its object.

## Every program

Hub, agent and the gate of remote write say which version they are, each replica for itself. For agents the hub has the same in
` + "`bellwether_fleet_cluster_info`" + `.

%s
A process that serves [hosted clusters](../guides/add-a-cluster.md#hosted-agents) has besides, for each of them:

%s
## Probes

Agents and the hub export these for each EndpointProbe that they run, as blackbox_exporter names them, also with the label ` + "`cluster`" + `.
` + "`vantage`" + ` is cluster or hub. [More about probes](../guides/probes.md).

%s
Of the probing itself they say, an agent with the label ` + "`cluster`" + `:

%s
## Sending

An agent that [makes slices itself](../guides/telemetry.md#clusters-without-a-prometheus) exports these about sending them, with the label ` + "`cluster`" + `:

%s
The [gate](../guides/telemetry.md#each-cluster-writes-for-itself) of the hub serves these at ` + "`/metrics`" + ` on port 8080. ` + "`cluster`" + ` is the sender. ` + "`reason`" + ` is
cluster or name, for a series that is not for this sender to write, and format, too_big or limit.

%s`

func table(all []series.Series) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | says |\n|---|---|---|---|\n")
	for _, s := range all {
		labels := make([]string, len(s.Labels))
		for i, l := range s.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.Type, strings.Join(labels, ", "), s.Help)
	}
	return b.String()
}

// TestReference holds the page to the names.
func TestReference(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "reference", "metrics.md")
	got := strings.ReplaceAll(fmt.Sprintf(reference, table(series.Exported()), table(series.Hub()),
		table(series.Programs()), table(series.Hosting()), table(series.Probed()), table(series.Prober()),
		table(series.SliceSender()), table(series.RemoteWriteGate())), "|  |", "| |")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/reference/metrics.md; run with -update if this is what you want (-want +got):\n%s", diff)
	}
}
