// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// releaseFaults concern a rollout and what it brings.
func releaseFaults() map[string]fault {
	return map[string]fault{
		"pods taken away during the soak": {
			inject: func(x *trial) {
				x.soak()
				x.takePods()
			},
			shows: rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHalted),
			why: []string{"Failed (PodsUnavailable)", "Deployment trial-canary/echo-operator", "exceeded quota",
				"counts the cluster as Failed"},
			heal: (*trial).undoAll,
		},
		"pods taken away during the soak, and during the rollback": {
			inject: func(x *trial) {
				x.soak(func(s *v1alpha1.ManagedOperatorSpec) {
					s.Strategy.OnFailure, s.Strategy.Waves[0].Deadline = v1alpha1.FailureRollback, seconds(45)
				})
				x.takePods()
			},
			shows: (*trial).rollbackHalts,
			why:   []string{"Failed (FailedCreate)", "exceeded quota"},
			heal:  (*trial).undoAll,
		},
		"image in the CSV edited during a rollout": {
			inject: (*trial).editImageInRollout,
			shows:  installHas(v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonDrifted),
			why:    []string{"Failed (Drifted)", "echo-operator.v1.0.0 was changed to run another image"},
			holds: []func(*trial) error{(*trial).isNoSuccess,
				says([]string{"CLUSTER"}, "fleet", "list", "--state", "drifted"),
				says([]string{"OPERATOR"}, "operator", "list", "--state", "drifted"),
				says([]string{"OPERATOR"}, "rollout", "list", "--state", "drifted")},
			heal: (*trial).undoAll,
		},
		"default channel renamed while settings are held": {
			inject: (*trial).renameChannelWhileHeld,
			shows:  operatorHas(v1alpha1.ConditionVersionHeld, metav1.ConditionTrue, v1alpha1.ReasonVersionHeld),
			why:    []string{"VersionHeld", "release-hold"},
			holds: []func(*trial) error{(*trial).staysHeld,
				says([]string{"Held:", "channel main"}, "operator", "get", "OPERATOR")},
			heal: (*trial).undoAll,
		},
		"Prometheus stopped during a gate": {
			inject: func(x *trial) {
				pid := shared.Prometheus().Process().PID()
				x.signal(syscall.SIGSTOP, pid)
				x.undo = append(x.undo, func() { x.signal(syscall.SIGCONT, pid) })
				x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
					s.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Gates: []v1alpha1.Gate{{Name: "reconciles",
						PromQL: &v1alpha1.PromQLGate{Query: failingReconciles, Operator: v1alpha1.LessThan,
							Threshold: "0.1", Window: seconds(60)}}}}}
					greeting("with a gate")(s)
				})
			},
			shows: rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonVerifying),
			why:   []string{"Waiting (Verifying)", "gate reconciles", "no answer within 5s"},
			holds: []func(*trial) error{(*trial).gateMissesPrometheus,
				refuses([]string{"no answer within 5s", "BUDGET LEFT", "not known"}, "slo", "get", "OPERATOR")},
			heal: (*trial).undoAll,
		},
	}
}

// haltFaults keep a rollout from changing a cluster: people want that.
func haltFaults() map[string]fault {
	return map[string]fault{
		"freeze over a running rollout": {
			inject: func(x *trial) {
				x.soak()
				x.run("fleet", "freeze", "CLUSTER", "--name", "OPERATOR", "--reason", "incident 4711")
				x.undo = append(x.undo, func() { x.run("fleet", "unfreeze", "OPERATOR") })
			},
			shows: (*trial).isFrozen,
			why:   []string{"FleetFreeze trial-canary", "incident 4711"},
			holds: []func(*trial) error{says([]string{"CLUSTER"}, "fleet", "list", "--state", "frozen"),
				says([]string{"OPERATOR"}, "operator", "list", "--state", "frozen")},
			heal: (*trial).undoAll,
		},
		"change window, and an unknown time zone on the cluster": {
			inject: func(x *trial) {
				x.editCluster(func(c *v1alpha1.FleetCluster) {
					metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationTimeZone, "Mars/Base")
				})
				x.window(v1alpha1.TimeZoneOfCluster)
				x.change(greeting("with a change window"))
			},
			shows: rolloutHoldsBack(v1alpha1.ReasonWindowClosed),
			why:   []string{"Waiting (WindowClosed)", v1alpha1.AnnotationTimeZone, "Mars/Base"},
			holds: []func(*trial) error{(*trial).refusesUnknownZone},
			heal:  (*trial).undoAll,
		},
		"veto by the owner of the cluster": {
			inject: func(x *trial) {
				x.veto(map[string]string{"reason": "audit"})
				x.change(greeting("after a veto"))
			},
			shows: rolloutHoldsBack(v1alpha1.ReasonVetoed),
			why:   []string{"Waiting (Vetoed)", "audit", "delete ConfigMap bellwether-veto"},
			holds: []func(*trial) error{says([]string{"CLUSTER"}, "fleet", "list", "--state", "vetoed"),
				says([]string{"OPERATOR"}, "operator", "list", "--state", "vetoed")},
			heal: (*trial).undoAll, // it is caught up with
		},
		"veto by the owner of the cluster, past its end": {
			inject: func(x *trial) {
				x.veto(map[string]string{"reason": "audit", "until": "2026-01-05T22:00:00Z"})
				x.change(greeting("after a veto that was over"))
			},
			shows: rolloutHoldsBack(v1alpha1.ReasonVetoed),
			why:   []string{"Waiting (Vetoed)", "2026-01-05T22:00:00Z", "delete ConfigMap bellwether-veto"},
			holds: []func(*trial) error{(*trial).vetoLastsUntilDeleted},
			heal:  (*trial).undoAll,
		},
		"the only cluster paused": {
			inject: func(x *trial) {
				x.editCluster(func(c *v1alpha1.FleetCluster) { c.Spec.Paused = true })
				x.change(greeting("after a pause"))
			},
			shows: rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTooManyDeferred),
			why:   []string{"Waiting (ClusterPaused)", "cluster canary is paused: no rollout admits it"},
			holds: []func(*trial) error{says([]string{"CLUSTER"}, "fleet", "list", "--state", "paused"),
				says([]string{"OPERATOR"}, "operator", "list", "--state", "paused")},
			heal: (*trial).undoAll,
		},
	}
}

// soak rolls out a release whose only wave soaks for an hour, and waits for that. undoAll sets the operator back.
func (x *trial) soak(change ...func(*v1alpha1.ManagedOperatorSpec)) {
	x.t.Helper()
	x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Soak: seconds(3600), UnreadyGrace: seconds(10)}}
		greeting("with a soak")(s)
		for _, do := range change {
			do(s)
		}
	})
	x.until("the wave soaks", patience, (*trial).isSoaking)
}

// isSoaking returns nil if the first wave of the newest rollout soaks.
func (x *trial) isSoaking() error {
	ro, err := x.newestRollout()
	if err == nil && (len(ro.Status.Waves) == 0 || ro.Status.Waves[0].Phase != v1alpha1.WaveSoaking) {
		err = errNotSoaking
	}
	return err
}

// rollbackHalts returns nil if the newest rollout is a rollback that halted.
func (x *trial) rollbackHalts() error {
	ro, err := x.newestRollout()
	switch {
	case err != nil:
		return err
	case ro.Spec.Rollback == nil:
		return fmt.Errorf("%s is no rollback", ro.Name)
	}
	return matches(ro.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHalted)
}

// rolloutHoldsBack returns a function that returns nil once the operator's newest rollout does not admit the cluster
// for a reason.
func rolloutHoldsBack(reason string) func(*trial) error {
	return func(x *trial) error {
		ro, err := x.newestRollout()
		if err != nil {
			return err
		}
		for _, g := range ro.Status.HeldBack {
			if g.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%s (%s: %s) holds back %+v", ro.Name, ro.Status.Phase, ro.Status.Message, ro.Status.HeldBack)
	}
}

// nextRollout waits for a rollout that is newer than a revision.
func (x *trial) nextRollout(after int64) {
	x.t.Helper()
	x.until("the next rollout is made", patience, func(x *trial) error {
		ro, err := x.newestRollout()
		if err == nil && ro.Spec.Revision <= after {
			err = fmt.Errorf("the newest rollout is %s", ro.Name)
		}
		return err
	})
}

// rollOutRepeatedly rolls out one change of the configuration after the other. Nobody is paged because of that.
func (x *trial) rollOutRepeatedly() {
	x.t.Helper()
	const times = 15
	began := time.Now()
	for i := range times {
		x.change(greeting(fmt.Sprintf("%d of %d", i+1, times)))
		x.until("the operator runs", recoverLimit, (*trial).stands)
		x.until("the hub reports that the operator runs", recoverLimit, (*trial).reported)
	}
	x.until("Prometheus answers", patience, func(x *trial) error {
		pages, err := shared.Prometheus().Query(x.ctx(), fmt.Sprintf(
			`last_over_time(ALERTS{severity="page",alertstate="firing",operator=%q}[%ds])`, x.key.Name,
			int(time.Since(began).Seconds())+1), time.Now())
		if len(pages) > 0 {
			x.t.Fatalf("somebody is paged: %v", pages)
		}
		return err
	})
}

// editImageInRollout starts a rollout, and then has another image be in the CSV.
func (x *trial) editImageInRollout() {
	x.t.Helper()
	before, err := x.newestRollout()
	x.must(err)
	x.edit(greeting("with another image"))
	x.nextRollout(before.Spec.Revision)
	x.editCSV(func(operator *appsv1.DeploymentSpec) {
		operator.Template.Spec.Containers[0].Image = "example.com/bellwether/echo-operator:foreign"
	})
}

// isNoSuccess returns nil if the newest rollout runs and does not count the cluster as updated, nor does the agent.
func (x *trial) isNoSuccess() error {
	ro, err := x.newestRollout()
	if err != nil {
		return err
	}
	oi, err := x.read()
	switch {
	case err != nil:
		return err
	case oi.Spec.Admission.Hash != ro.Spec.Release.Hash():
		return fmt.Errorf("the cluster is not admitted to %s", ro.Name)
	case oi.Status.SucceededHash == oi.Spec.Admission.Hash:
		return fmt.Errorf("the agent says that the release has succeeded: %+v", oi.Status)
	case ro.Status.Phase.Ended() || ro.Status.Clusters.Succeeded > 0:
		return fmt.Errorf("%s is %s: %s", ro.Name, ro.Status.Phase, ro.Status.Message)
	}
	return nil
}

// renameChannelWhileHeld has settings rolled back, and then publishes a catalog whose default channel has another name.
func (x *trial) renameChannelWhileHeld() {
	x.t.Helper()
	x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Strategy.OnFailure, s.Strategy.Waves = v1alpha1.FailureRollback, []v1alpha1.Wave{{Name: "all",
			Deadline: seconds(30)}}
		s.Install.Config = &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "POD_IP", Value: "nowhere"}}}
	})
	x.until("the settings are held", patience, func(x *trial) error {
		if err := x.isRolledBack(); err != nil {
			return err
		}
		return x.staysHeld()
	})
	x.changeLadder("the channel is renamed", func(_ *platform.Author, file string) {
		text, err := os.ReadFile(file)
		x.must(err)
		x.must(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "stable", "main")), 0o600))
	})
	x.until("the channel has another name", patience, func(x *trial) error {
		if target := x.managed().Status.Target; target == nil || target.Channel != "main" {
			return fmt.Errorf("the target is %+v", target)
		}
		return nil
	})
}

// staysHeld returns nil if the settings are held, and the newest rollout does not have them.
func (x *trial) staysHeld() error {
	ro, err := x.newestRollout()
	holds := x.managed().Spec.Holds
	switch {
	case err != nil:
		return err
	case len(holds) != 1 || !holds[0].IsOfSettings():
		return fmt.Errorf("the holds are %+v", holds)
	case holds[0].Covers(ro.Spec.Release):
		return fmt.Errorf("%s rolls out the settings that are held", ro.Name)
	}
	return nil
}

// changeLadder changes the ladder of the operator's catalog and publishes it, whatever is lost by that; undoAll
// publishes what was there before, for a reason.
func (x *trial) changeLadder(reason string, change func(author *platform.Author, file string)) {
	x.t.Helper()
	author, err := shared.Author(x.ctx(), x.key.Name)
	x.must(err)
	file := filepath.Join(author.Dir, "ladders", "echo-operator.yaml")
	before, err := os.ReadFile(file)
	x.must(err)
	publish := func() {
		x.must(os.RemoveAll(filepath.Join(author.Dir, "catalog"))) // a compiled catalog keeps its channels
		x.must(author.Run(x.ctx(), "catalog", "compile", "ladders", "catalog"))
		x.must(author.Run(x.ctx(), "catalog", "publish", "catalog", author.Ref, "--key", "release.key",
			"--force", reason))
	}
	x.undo = append(x.undo, func() {
		x.must(os.WriteFile(file, before, 0o600))
		publish()
	})
	change(author, file)
	publish()
}

// editCluster changes the FleetCluster; undoAll sets its spec, labels and annotations back.
func (x *trial) editCluster(change func(*v1alpha1.FleetCluster)) {
	x.t.Helper()
	write := func(change func(*v1alpha1.FleetCluster)) *v1alpha1.FleetCluster {
		c := &v1alpha1.FleetCluster{}
		x.must(x.hub.Get(x.ctx(), client.ObjectKey{Name: x.cluster}, c))
		before := c.DeepCopy()
		change(c)
		x.must(x.hub.Patch(x.ctx(), c, client.MergeFrom(before)))
		return before
	}
	before := write(change)
	x.undo = append(x.undo, func() {
		write(func(c *v1alpha1.FleetCluster) {
			c.Spec, c.Labels, c.Annotations = before.Spec, before.Labels, before.Annotations
		})
	})
}

// gateMissesPrometheus returns nil if the gate of the newest rollout has no verdict, because Prometheus does not
// answer.
func (x *trial) gateMissesPrometheus() error {
	ro, err := x.newestRollout()
	switch {
	case err != nil:
		return err
	case len(ro.Status.Waves) == 0 || len(ro.Status.Waves[0].Gates) == 0:
		return fmt.Errorf("the waves are %+v", ro.Status.Waves)
	}
	gate := ro.Status.Waves[0].Gates[0]
	if gate.Verdict != v1alpha1.GateWaiting || !strings.Contains(gate.Evidence, "Prometheus") {
		return fmt.Errorf("the gate is %+v", gate)
	}
	return nil
}

// isFrozen returns nil if the hub says that the cluster is frozen.
func (x *trial) isFrozen() error {
	c := &v1alpha1.FleetCluster{}
	if err := x.hub.Get(x.ctx(), client.ObjectKey{Name: x.cluster}, c); err != nil {
		return err
	}
	if c.Status.Freeze == nil {
		return fmt.Errorf("the status is %+v", c.Status)
	}
	return nil
}

func (x *trial) newWindow(name, zone string) *v1alpha1.ChangeWindow {
	return &v1alpha1.ChangeWindow{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ChangeWindowSpec{
		Type: v1alpha1.WindowAllow, Start: "2026-01-05T00:00:00", Duration: metav1.Duration{Duration: 24 * time.Hour},
		Recurrence: "FREQ=DAILY", TimeZone: zone,
		ClusterSelector: &metav1.LabelSelector{MatchLabels: memberOf(x.cluster).Labels}}}
}

// window makes a ChangeWindow that is always in force for the cluster; undoAll deletes it.
func (x *trial) window(zone string) {
	x.t.Helper()
	w := x.newWindow(x.key.Name, zone)
	x.must(x.hub.Create(x.ctx(), w))
	x.undo = append(x.undo, func() { x.remove(x.hub, w) })
}

// refusesUnknownZone returns nil if no ChangeWindow can be made that has an unknown time zone itself.
func (x *trial) refusesUnknownZone() error {
	err := x.hub.Create(x.ctx(), x.newWindow(x.key.Name+"-zone", "Mars/Base"), client.DryRunAll)
	if err == nil {
		return errors.New("a ChangeWindow with an unknown time zone is not refused")
	}
	return contains(err.Error(), []string{"time zone"})
}

// veto has the owner of the cluster refuse changes; undoAll ends that.
func (x *trial) veto(data map[string]string) {
	x.t.Helper()
	x.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: v1alpha1.VetoConfigMap},
		Data: data})
	x.until("the hub knows of the veto", patience, func(x *trial) error {
		c := &v1alpha1.FleetCluster{}
		if err := x.hub.Get(x.ctx(), client.ObjectKey{Name: x.cluster}, c); err != nil {
			return err
		}
		if c.Status.Veto == nil {
			return fmt.Errorf("the status is %+v", c.Status)
		}
		return nil
	})
}

// vetoLastsUntilDeleted returns nil if it is said that a veto whose end is past does not end by itself: it is in force
// until somebody deletes it.
func (x *trial) vetoLastsUntilDeleted() error {
	out, err := x.why()
	if err != nil {
		return err
	}
	text := strings.Join(strings.Fields(out), " ")
	if !strings.Contains(text, "it ends nothing by itself") {
		return fmt.Errorf("why does not say that the end of the veto ends nothing by itself:\n%s", out)
	}
	if strings.Contains(text, "deleted or over") {
		return fmt.Errorf("why says that the veto may end by itself:\n%s", out)
	}
	return nil
}
