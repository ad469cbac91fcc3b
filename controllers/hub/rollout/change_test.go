// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/kittest"
)

// started is a rollout of echo that started at its revision, in seconds.
func started(name string, revision int64, version string,
	more ...func(*v1alpha1.OperatorRollout)) *v1alpha1.OperatorRollout {
	at := metav1.NewTime(time.Unix(revision, 0))
	ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name,
		UID: types.UID("uid of " + name)}}
	ro.Spec.Operator.Name, ro.Spec.Revision, ro.Spec.Release.Version = "echo", revision, version
	ro.Status.StartedAt, ro.Status.CurrentWave = &at, "canary"
	for _, change := range more {
		change(ro)
	}
	return ro
}

// admitted are installs on which a rollout found a version each; none for an empty one.
func admitted(rollout string, before ...string) []client.Object {
	var out []client.Object
	for i, version := range before {
		oi := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Name: "echo",
			Namespace: rollout + strings.Repeat("x", i)}}
		oi.Spec.Admission = &v1alpha1.Admission{Rollout: rollout, RolloutUID: "uid of " + rollout}
		if version != "" {
			oi.Spec.Admission.Previous = &v1alpha1.PreviousRelease{Version: version}
		}
		out = append(out, oi)
	}
	return out
}

func TestMetricsOfChanges(t *testing.T) {
	approved := func(by string, second int64) func(*v1alpha1.OperatorRollout) {
		return func(ro *v1alpha1.OperatorRollout) {
			ro.Spec.Approvals = append(ro.Spec.Approvals, v1alpha1.Approval{By: by, At: metav1.Unix(second, 0)})
		}
	}
	back := func(of, version string, automatic bool) func(*v1alpha1.OperatorRollout) {
		return func(ro *v1alpha1.OperatorRollout) {
			ro.Status.CurrentWave = "rollback"
			ro.Spec.Rollback = &v1alpha1.RolloutRollback{Of: of, UID: "uid of " + of, Version: version,
				Automatic: automatic}
		}
	}
	pending := func(ro *v1alpha1.OperatorRollout) { ro.Status.StartedAt = nil }
	for name, test := range map[string]struct {
		rollouts []client.Object
		installs [][]client.Object
		want     []string
	}{
		"an upgrade that nobody approved, of clusters that ran one version or nothing": {
			rollouts: []client.Object{started("echo-1", 1, "1.1.0")},
			installs: [][]client.Object{admitted("echo-1", "1.0.0", "", "1.0.0", "")},
			want: []string{`approved_by="",from="1.0.0",kind="rollout",operator="echo",operator_namespace="ops",` +
				`rollout="echo-1",version="1.1.0",wave="canary"} 1`},
		},
		"the version that more than half of the clusters ran, and the last approval": {
			rollouts: []client.Object{started("echo-1", 1, "1.1.0", approved("jane", 30), approved("joe", 20))},
			installs: [][]client.Object{admitted("echo-1", "1.0.0", "0.9.0", "1.0.0", "0.8.0", "1.0.0")},
			want: []string{`approved_by="jane",from="1.0.0",kind="rollout",operator="echo",operator_namespace="ops",` +
				`rollout="echo-1",version="1.1.0",wave="canary"} 1`},
		},
		"half of the clusters is not most of them": {
			rollouts: []client.Object{started("echo-1", 1, "1.1.0")},
			installs: [][]client.Object{admitted("echo-1", "1.0.0", "0.9.0")},
			want: []string{`approved_by="",from="several versions",kind="rollout",operator="echo",` +
				`operator_namespace="ops",rollout="echo-1",version="1.1.0",wave="canary"} 1`},
		},
		"one that did not start, and one that did and admitted nothing": {
			rollouts: []client.Object{started("echo-1", 1, "1.0.0"), started("echo-2", 2, "1.1.0", pending)},
			want: []string{`approved_by="",from="",kind="rollout",operator="echo",operator_namespace="ops",` +
				`rollout="echo-1",version="1.0.0",wave="canary"} 1`},
		},
		"the newest of two of one version": {
			rollouts: []client.Object{started("echo-2", 2, "1.1.0"), started("echo-1", 1, "1.1.0")},
			installs: [][]client.Object{admitted("echo-1", "1.0.0"), admitted("echo-2", "1.1.0")},
			want: []string{`approved_by="",from="1.1.0",kind="rollout",operator="echo",operator_namespace="ops",` +
				`rollout="echo-2",version="1.1.0",wave="canary"} 2`},
		},
		"a rollback, and what it rolls back": {
			rollouts: []client.Object{started("echo-1", 1, "1.0.0"), started("echo-2", 2, "1.1.0", approved("jane", 1)),
				started("echo-3", 3, "1.0.0", back("echo-2", "1.1.0", true))},
			installs: [][]client.Object{admitted("echo-2", "1.0.0"), admitted("echo-3", "1.0.0", "1.0.0")},
			want: []string{
				`approved_by="",from="1.1.0",kind="automatic rollback",operator="echo",operator_namespace="ops",` +
					`rollout="echo-3",version="1.0.0",wave="rollback"} 3`,
				`approved_by="jane",from="1.0.0",kind="rollout",operator="echo",operator_namespace="ops",` +
					`rollout="echo-2",version="1.1.0",wave="canary"} 2`,
			},
		},
		"a rollback that a person asked for": {
			rollouts: []client.Object{started("echo-3", 3, "1.0.0", back("echo-2", "1.1.0", false))},
			want: []string{`approved_by="",from="1.1.0",kind="rollback",operator="echo",operator_namespace="ops",` +
				`rollout="echo-3",version="1.0.0",wave="rollback"} 3`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := test.rollouts
			for _, of := range test.installs {
				objects = append(objects, of...)
			}
			want := `# HELP ` + series.RolloutChangeStart + ` When the newest rollout of each version of a managed ` +
				`operator started, with what it changes.
# TYPE ` + series.RolloutChangeStart + " gauge\n"
			for _, line := range test.want {
				want += series.RolloutChangeStart + "{" + line + "\n"
			}
			kittest.NewGauges(t, collect, objects...).Compare(t, want, series.RolloutChangeStart)
		})
	}
}

// TestFailedWaveStaysDuringRollback has the rollback be the operator's newest rollout: alerts about the version that
// failed begin while it is rolled back, and end later.
func TestFailedWaveStaysDuringRollback(t *testing.T) {
	failed := func(ro *v1alpha1.OperatorRollout) {
		ro.Status.Waves = []v1alpha1.WaveStatus{{Name: "canary", Phase: v1alpha1.WaveVerifying,
			Gates: []v1alpha1.GateStatus{{Name: "reconciles", Verdict: v1alpha1.GateFailed}}}}
	}
	judged := func(revision int) string {
		return fmt.Sprintf("# HELP %[1]s 1 for each wave that was judged failed, of the newest rollout of each "+
			"version of a managed operator.\n# TYPE %[1]s gauge\n"+
			`%[1]s{operator="echo",operator_namespace="ops",release="%[2]s",version="1.1.0",wave="canary"} 1`+"\n",
			series.RolloutWaveFailed, series.ShortHash(started("", int64(revision), "1.1.0").Spec.Release.Hash()))
	}
	bad := started("echo-2", 2, "1.1.0", failed)
	back := started("echo-3", 3, "1.0.0")
	kittest.NewGauges(t, collect, started("echo-1", 1, "1.0.0"), bad, back).Compare(t, judged(2),
		series.RolloutWaveFailed)
	kittest.NewGauges(t, collect, bad, back, started("echo-4", 4, "1.1.0")).Compare(t, "", series.RolloutWaveFailed)
}
