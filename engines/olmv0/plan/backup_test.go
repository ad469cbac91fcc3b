// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/bundles"
)

// upgradePlanned has an InstallPlan for v2 that waits for its approval, and a policy that requires backups.
func upgradePlanned() Input {
	in := upgrading()
	in.Install.Spec.Operator = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	in.Install.Spec.Backup = &v1alpha1.BackupPolicy{BeforeUpgrade: v1alpha1.BeforeUpgradeWhenNeeded}
	in.Offer.Rollback = bundles.RollbackNeedsBackup
	in.Cluster.Subscriptions[0].CurrentCSV = v2
	in.Cluster.InstallPlans = append(in.Cluster.InstallPlans,
		InstallPlan{Name: "install-2", Compared: true, Phase: "RequiresApproval", CSVs: []string{v2}, Created: now})
	return in
}

// backupFor returns a backup that was requested before the upgrade.
func backupFor(in Input, change func(*v1alpha1.OperatorBackup)) []v1alpha1.OperatorBackup {
	b := backups.NewUpgradeBackup(in.Install,
		backups.Hop{Operator: in.Install.Spec.Operator, From: v1, To: v2, Revision: 2})
	change(b)
	return []v1alpha1.OperatorBackup{*b}
}

func TestAnUpgradeWaitsForItsBackup(t *testing.T) {
	approve := []Action{act(Approve, KindInstallPlan, "install-2")}
	complete := func(b *v1alpha1.OperatorBackup) {
		b.Status.VerifiedAt = &metav1.Time{Time: now}
		conditions.Set(&b.Status.Conditions, 1, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")
	}
	running := func(b *v1alpha1.OperatorBackup) {
		conditions.Set(&b.Status.Conditions, 1, v1alpha1.ConditionReady, false, v1alpha1.ReasonProgressing, "")
	}
	failing := func(b *v1alpha1.OperatorBackup) {
		conditions.Set(&b.Status.Conditions, 1, v1alpha1.ConditionStalled, true, v1alpha1.ReasonBackupForbidden,
			"the agent may not list echos.")
	}
	for name, test := range map[string]struct {
		change func(*Input)
		want   want
		says   string
	}{
		"no backup yet": {change: func(*Input) {}, says: "from echo.v1.0.0 to echo.v1.1.0 waits",
			want: want{Reason: v1alpha1.ReasonBackupPending, Failing: v1alpha1.ConditionPlanApproved}},
		"it is being taken": {change: func(in *Input) { in.Backups = backupFor(*in, running) }, says: "is being taken",
			want: want{Reason: v1alpha1.ReasonBackupPending, Failing: v1alpha1.ConditionPlanApproved}},
		"it fails": {change: func(in *Input) { in.Backups = backupFor(*in, failing) },
			says: "the agent may not list echos.",
			want: want{Reason: v1alpha1.ReasonBackupForbidden, Stalled: true, Failing: v1alpha1.ConditionPlanApproved}},
		"it is complete": {change: func(in *Input) { in.Backups = backupFor(*in, complete) },
			want: want{Actions: approve, Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved}},
		"one for an earlier admission is not enough": {
			change: func(in *Input) {
				in.Backups = backupFor(*in, complete)
				in.Install.Spec.Admission.Revision = 3
			},
			want: want{Reason: v1alpha1.ReasonBackupPending, Failing: v1alpha1.ConditionPlanApproved}},
		"the upgrade can be rolled back in place": {
			change: func(in *Input) { in.Offer.Rollback = bundles.RollbackInPlace },
			want: want{Actions: approve, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionPlanApproved}},
		"no policy": {change: func(in *Input) { in.Install.Spec.Backup = nil },
			want: want{Actions: approve, Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved}},
		"the plan is approved already": {
			change: func(in *Input) {
				in.Cluster.InstallPlans[1].Approved, in.Cluster.InstallPlans[1].Phase = true, "Installing"
			},
			want: want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved}},
	} {
		t.Run(name, func(t *testing.T) {
			in := upgradePlanned()
			test.change(&in)
			p, status := decide(in)
			if diff := cmp.Diff(test.want, got(p, status)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if message := conditions.Get(status.Conditions, v1alpha1.ConditionReady).Message; !strings.Contains(message,
				test.says) {
				t.Errorf("message %q does not say %q", message, test.says)
			}
		})
	}
}

// TestTheStatusOfAWaitingUpgradeNamesItsHop: the backup controller has only the status.
func TestTheStatusOfAWaitingUpgradeNamesItsHop(t *testing.T) {
	in := upgradePlanned()
	_, in.Install.Status = decide(in)
	want := backups.Hop{Operator: in.Install.Spec.Operator, From: v1, To: v2, Revision: 2}
	if got, ok := backups.FindPendingHop(in.Install); !ok || got != want {
		t.Errorf("got %+v, %t, want %+v", got, ok, want)
	}
}

// TestAFirstInstallationNeedsNoBackup: there is nothing to save.
func TestAFirstInstallationNeedsNoBackup(t *testing.T) {
	in := planned("RequiresApproval", v1)
	in.Install.Spec.Backup = &v1alpha1.BackupPolicy{BeforeUpgrade: v1alpha1.BeforeUpgradeAlways}
	p, status := decide(in)
	want := want{Actions: []Action{act(Approve, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
		Failing: v1alpha1.ConditionPlanApproved}
	if diff := cmp.Diff(want, got(p, status)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}
