// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backups_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/bundles"
)

var (
	echo  = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hop   = backups.Hop{Operator: echo, From: "echo.v1", To: "echo.v2", Revision: 4}
)

func install(policy *v1alpha1.BackupPolicy) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod", Name: echo.InstallName(), Generation: 7,
			CreationTimestamp: metav1.NewTime(start)},
		Spec: v1alpha1.OperatorInstallSpec{Operator: echo, Cluster: "prod", Backup: policy,
			Admission: &v1alpha1.Admission{Revision: 4, Hash: "h"}},
	}
}

// backup returns a backup that was requested so many hours after the start.
func backup(name string, hours int, change ...func(*v1alpha1.OperatorBackup)) v1alpha1.OperatorBackup {
	b := v1alpha1.OperatorBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			CreationTimestamp: metav1.NewTime(start.Add(time.Duration(hours) * time.Hour))},
		Spec: v1alpha1.OperatorBackupSpec{Operator: echo, Trigger: v1alpha1.BackupTriggerSchedule},
	}
	for _, c := range change {
		c(&b)
	}
	return b
}

func verified(b *v1alpha1.OperatorBackup) {
	b.Status.VerifiedAt = &b.CreationTimestamp
	conditions.Set(&b.Status.Conditions, 1, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")
}

func before(from, to string, revision int64) func(*v1alpha1.OperatorBackup) {
	return func(b *v1alpha1.OperatorBackup) {
		b.Spec.Trigger = v1alpha1.BackupTriggerUpgrade
		b.Spec.Upgrade = &v1alpha1.BackupUpgrade{From: from, To: to, Revision: revision}
	}
}

func manual(b *v1alpha1.OperatorBackup) { b.Spec.Trigger = v1alpha1.BackupTriggerManual }

func TestVerified(t *testing.T) {
	another := func(b *v1alpha1.OperatorBackup) { b.Spec.Operator.Namespace = "other" }
	right := before("echo.v1", "echo.v2", 4)
	for name, test := range map[string]struct {
		all  []v1alpha1.OperatorBackup
		hop  backups.Hop
		want string
	}{
		"none":                        {hop: hop},
		"one for the hop":             {hop: hop, all: []v1alpha1.OperatorBackup{backup("a", 0, right, verified)}, want: "a"},
		"one that is not complete":    {hop: hop, all: []v1alpha1.OperatorBackup{backup("a", 0, right)}},
		"one for another admission":   {hop: hop, all: []v1alpha1.OperatorBackup{backup("a", 0, before("echo.v1", "echo.v2", 3), verified)}},
		"one for another hop":         {hop: hop, all: []v1alpha1.OperatorBackup{backup("a", 0, before("echo.v2", "echo.v3", 4), verified)}},
		"one of another operator":     {hop: hop, all: []v1alpha1.OperatorBackup{backup("a", 0, right, another, verified)}},
		"one that was scheduled":      {hop: hop, all: []v1alpha1.OperatorBackup{backup("a", 0, verified)}},
		"any admission of a rollback": {hop: backups.Hop{Operator: echo, From: "echo.v1", To: "echo.v2"}, all: []v1alpha1.OperatorBackup{backup("a", 0, before("echo.v1", "echo.v2", 3), verified)}, want: "a"},
		"the newest of several": {hop: hop, want: "b", all: []v1alpha1.OperatorBackup{
			backup("a", 0, right, verified), backup("b", 2, right, verified), backup("c", 1, right, verified),
			backup("d", 3, right)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if b := backups.FindVerified(test.all, test.hop); b != nil {
				got = b.Name
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestIsNeeded(t *testing.T) {
	policy := func(when v1alpha1.BeforeUpgrade) *v1alpha1.BackupPolicy {
		return &v1alpha1.BackupPolicy{BeforeUpgrade: when}
	}
	for name, test := range map[string]struct {
		policy *v1alpha1.BackupPolicy
		class  bundles.RollbackClass
		want   bool
	}{
		"no policy": {class: bundles.RollbackNeedsBackup},
		"never": {policy: policy(v1alpha1.BeforeUpgradeNever),
			class: bundles.RollbackNeedsBackup},
		"always": {policy: policy(v1alpha1.BeforeUpgradeAlways),
			class: bundles.RollbackInPlace, want: true},
		"when needed, in place": {policy: policy(v1alpha1.BeforeUpgradeWhenNeeded),
			class: bundles.RollbackInPlace},
		"when needed, needs a backup": {policy: policy(v1alpha1.BeforeUpgradeWhenNeeded),
			class: bundles.RollbackNeedsBackup, want: true},
		"when needed, one way":             {policy: policy(""), class: bundles.RollbackOneWay, want: true},
		"when needed, the catalog is mute": {policy: policy(""), want: true},
	} {
		if got := backups.IsNeeded(test.policy, test.class); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestABackupForAnUpgradeHasOneName(t *testing.T) {
	policy := &v1alpha1.BackupPolicy{BackupSettings: v1alpha1.BackupSettings{Store: "file:///a"}}
	first, again := backups.NewUpgradeBackup(install(policy), hop), backups.NewUpgradeBackup(install(policy), hop)
	if first.Name != again.Name || !strings.HasPrefix(first.Name, "fleet.echo.") {
		t.Errorf("names %q and %q, want the same one", first.Name, again.Name)
	}
	policy.Store = "file:///b"
	if other := backups.NewUpgradeBackup(install(policy), hop); other.Name == first.Name {
		t.Errorf("other settings have the same name %q", other.Name)
	}
	want := v1alpha1.OperatorBackupSpec{Operator: echo, Trigger: v1alpha1.BackupTriggerUpgrade,
		Upgrade:        &v1alpha1.BackupUpgrade{Revision: 4, Hash: "h", From: "echo.v1", To: "echo.v2"},
		BackupSettings: v1alpha1.BackupSettings{Store: "file:///a"}}
	if diff := cmp.Diff(want, first.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestPendingHop(t *testing.T) {
	waiting := func(reason string, generation int64) *v1alpha1.OperatorInstall {
		i := install(nil)
		i.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo.v1"}
		i.Status.Path = []string{"echo.v2", "echo.v3"}
		conditions.Set(&i.Status.Conditions, generation, v1alpha1.ConditionPlanApproved, false, reason, "")
		return i
	}
	if got, ok := backups.FindPendingHop(waiting(v1alpha1.ReasonBackupPending, 7)); !ok || got != hop {
		t.Errorf("got %+v, %t, want %+v", got, ok, hop)
	}
	for name, i := range map[string]*v1alpha1.OperatorInstall{
		"another reason":                 waiting(v1alpha1.ReasonProgressing, 7),
		"an observation that is too old": waiting(v1alpha1.ReasonBackupPending, 6),
		"nothing observed":               install(nil),
	} {
		if got, ok := backups.FindPendingHop(i); ok {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

func TestNextRun(t *testing.T) {
	for schedule, want := range map[string]time.Time{
		"0 3 * * *":                      start.Add(15 * time.Hour),
		"@hourly":                        start.Add(time.Hour),
		"CRON_TZ=Asia/Tokyo 30 22 * * *": start.Add(90 * time.Minute),
	} {
		got, err := backups.NextRun(schedule, start)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", schedule, got, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := backups.Validate(nil); err != nil {
		t.Errorf("no policy: %v", err)
	}
	if err := backups.Validate(&v1alpha1.BackupPolicy{Schedule: "@daily"}); err != nil {
		t.Errorf("a good schedule: %v", err)
	}
	err := backups.Validate(&v1alpha1.BackupPolicy{Schedule: "every day"})
	if err == nil || !strings.Contains(err.Error(), "spec.backup.schedule") {
		t.Errorf("a bad schedule: %v", err)
	}
	operator := metav1.LabelSelectorRequirement{Key: "a", Operator: "Like"}
	err = backups.Validate(&v1alpha1.BackupPolicy{BackupSettings: v1alpha1.BackupSettings{
		Secrets: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{operator}}}})
	if err == nil || !strings.Contains(err.Error(), "spec.backup.secrets") {
		t.Errorf("a bad selector: %v", err)
	}
}

func TestExpired(t *testing.T) {
	two := int32(2)
	keepTwo := v1alpha1.BackupRetention{Keep: &two}
	for name, test := range map[string]struct {
		retention v1alpha1.BackupRetention
		all       []v1alpha1.OperatorBackup
		want      []string
	}{
		"no more than are kept": {retention: keepTwo, all: []v1alpha1.OperatorBackup{
			backup("a", 1, verified), backup("b", 2, verified)}},
		"the oldest go": {retention: keepTwo, want: []string{"a", "b"}, all: []v1alpha1.OperatorBackup{
			backup("b", 2, verified), backup("d", 4, verified), backup("a", 1, verified), backup("c", 3, verified)}},
		"those that people asked for stay": {retention: keepTwo, want: []string{"b"}, all: []v1alpha1.OperatorBackup{
			backup("a", 1, manual, verified), backup("b", 2, verified), backup("c", 3, verified),
			backup("d", 4, verified)}},
		"the newest complete one stays": {retention: keepTwo, all: []v1alpha1.OperatorBackup{
			backup("a", 1, verified), backup("b", 2), backup("c", 3), backup("d", 4)}},
		"one for the admission stays": {retention: keepTwo, want: []string{"b"}, all: []v1alpha1.OperatorBackup{
			backup("a", 1, before("echo.v1", "echo.v2", 4), verified), backup("b", 2, verified),
			backup("c", 3, verified), backup("d", 4, verified)}},
		"too old": {retention: v1alpha1.BackupRetention{MaxAge: &metav1.Duration{Duration: 20 * time.Hour}},
			want: []string{"a"}, all: []v1alpha1.OperatorBackup{backup("a", 1, verified), backup("b", 30, verified)}},
		"the last one is never too old": {retention: v1alpha1.BackupRetention{
			MaxAge: &metav1.Duration{Duration: time.Hour}},
			all: []v1alpha1.OperatorBackup{backup("a", 1, verified)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, b := range backups.ListExpired(test.all, install(&v1alpha1.BackupPolicy{Retention: test.retention}),
				start.Add(48*time.Hour)) {
				got = append(got, b.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("expired (-want +got):\n%s", diff)
			}
		})
	}
	all := []v1alpha1.OperatorBackup{backup("a", 1), backup("b", 2)}
	if got := backups.ListExpired(all, install(nil), start); got != nil {
		t.Errorf("without a policy: %v", got)
	}
}
