// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/migration"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time {
	at := metav1.NewTime(now.Add(-d))
	return &at
}

// definition stores objects as v1, and may have stored them as the others.
func definition(plural string, stored ...string) migration.Definition {
	return migration.Definition{Group: "example.com", Plural: plural, Version: "v1", Storage: "v1", Stored: stored,
		Generation: 2}
}

// newInput has an operator whose rollout has succeeded, and Things that may be stored
// as v1alpha1.
func newInput() migration.Input {
	install := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{
		Operator:         v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"},
		StorageMigration: &v1alpha1.StorageMigration{ReleaseHash: "h"},
		Admission:        &v1alpha1.Admission{Hash: "h"},
	}}
	install.Status.SucceededHash = "h"
	return migration.Input{Now: now, Install: install, Installed: true,
		Definitions: []migration.Definition{definition("things", "v1alpha1", "v1"), definition("bells", "v1")}}
}

func progress(resource string, change func(*v1alpha1.StorageMigrationProgress)) v1alpha1.StorageMigrationProgress {
	p := v1alpha1.StorageMigrationProgress{Resource: resource, From: []string{"v1alpha1"}, To: "v1",
		DefinitionGeneration: 2, StartTime: *ago(time.Hour)}
	if change != nil {
		change(&p)
	}
	return p
}

func failed(since time.Duration) func(*v1alpha1.StorageMigrationProgress) {
	return func(p *v1alpha1.StorageMigrationProgress) {
		p.Objects, p.Failed, p.Failures = 7, 2, []string{"things.example.com a/b: denied", "things.example.com a/c: no"}
		p.EndTime = ago(since)
	}
}

func TestNext(t *testing.T) {
	begun := v1alpha1.StorageMigrationProgress{Resource: "things.example.com", From: []string{"v1alpha1"}, To: "v1",
		DefinitionGeneration: 2, StartTime: metav1.NewTime(now)}
	halfway := progress("things.example.com", func(p *v1alpha1.StorageMigrationProgress) {
		p.Objects, p.Continue = 250, "next"
	})
	rewritten := progress("things.example.com", func(p *v1alpha1.StorageMigrationProgress) {
		p.Objects, p.EndTime = 300, ago(time.Minute)
	})
	for name, test := range map[string]struct {
		change   func(*migration.Input)
		migrate  string
		reason   string
		says     []string
		progress []v1alpha1.StorageMigrationProgress
		recheck  time.Duration
	}{
		"not asked": {change: func(in *migration.Input) { in.Install.Spec.StorageMigration = nil }},
		"being deleted": {change: func(in *migration.Input) {
			in.Install.DeletionTimestamp = ago(0)
			in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{halfway}
		}},
		"not installed": {change: func(in *migration.Input) { in.Installed, in.Definitions = false, nil },
			reason: v1alpha1.ReasonWaiting, says: []string{"not installed"}, recheck: time.Minute},
		"a permission is missing": {
			change: func(in *migration.Input) { in.Forbidden = []string{"things.example.com", "bells.example.com"} },
			reason: v1alpha1.ReasonStorageMigrationForbidden, recheck: time.Minute,
			says: []string{"`kubectl create clusterrole bellwether-migrate-echo --verb=list,patch " +
				"--resource=things.example.com,bells.example.com," +
				"customresourcedefinitions.apiextensions.k8s.io/status" +
				" && kubectl label clusterrole bellwether-migrate-echo " +
				"bellwether.dev/aggregate-to-agent-migration=true`"},
		},
		"a permission is missing before the upgrade": {
			change: func(in *migration.Input) {
				in.Definitions, in.Forbidden = in.Definitions[1:], []string{"bells.example.com"}
				in.Install.Spec.StorageMigration.ReleaseHash = ""
			},
			reason: v1alpha1.ReasonStorageMigrationForbidden, recheck: time.Minute,
		},
		"all is migrated": {change: func(in *migration.Input) { in.Definitions = in.Definitions[1:] },
			reason: v1alpha1.ReasonSucceeded, recheck: 30 * time.Minute},
		"the result stays": {
			change: func(in *migration.Input) {
				in.Definitions[0].Stored = []string{"v1"}
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{rewritten}
			},
			reason: v1alpha1.ReasonSucceeded, recheck: 30 * time.Minute,
			progress: []v1alpha1.StorageMigrationProgress{rewritten},
		},
		"vetoed": {change: func(in *migration.Input) { in.Veto = &v1alpha1.ClusterVeto{Reason: "audit"} },
			reason: v1alpha1.ReasonVetoed, says: []string{"audit", "as v1alpha1"}, recheck: time.Minute},
		"the rollout goes on": {
			change: func(in *migration.Input) { in.Install.Spec.StorageMigration.ReleaseHash = "" },
			reason: v1alpha1.ReasonWaiting,
			says: []string{"Objects of things.example.com may be stored as v1alpha1; they must be stored again as " +
				"v1.", "once the rollout"},
		},
		"several wait": {
			change: func(in *migration.Input) {
				in.Install.Spec.StorageMigration.ReleaseHash = "older"
				in.Definitions[1].Stored = []string{"v1beta1", "v1"}
			},
			reason: v1alpha1.ReasonWaiting, says: []string{"1 other definition"},
		},
		"another release is admitted": {
			change: func(in *migration.Input) { in.Install.Spec.Admission.Hash = "newer" },
			reason: v1alpha1.ReasonWaiting,
		},
		"the release is not installed yet": {
			change: func(in *migration.Input) { in.Install.Status.SucceededHash = "" }, reason: v1alpha1.ReasonWaiting,
		},
		"after a rollback": {
			change: func(in *migration.Input) { in.Install.Spec.Admission.Rollback = &v1alpha1.AdmissionRollback{} },
			reason: v1alpha1.ReasonWaiting, says: []string{"after a rollback"},
		},
		"it begins": {migrate: "things.example.com", reason: v1alpha1.ReasonProgressing,
			progress: []v1alpha1.StorageMigrationProgress{begun}},
		"it goes on": {
			change: func(in *migration.Input) {
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{halfway}
			},
			migrate: "things.example.com", reason: v1alpha1.ReasonProgressing,
			progress: []v1alpha1.StorageMigrationProgress{halfway},
		},
		"only status.storedVersions is left": {
			change: func(in *migration.Input) {
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{rewritten}
			},
			migrate: "things.example.com", reason: v1alpha1.ReasonProgressing,
			progress: []v1alpha1.StorageMigrationProgress{rewritten},
		},
		"it begins again where the definition has changed": {
			change: func(in *migration.Input) {
				old := halfway
				old.DefinitionGeneration = 1
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{old}
			},
			migrate: "things.example.com", reason: v1alpha1.ReasonProgressing,
			progress: []v1alpha1.StorageMigrationProgress{begun},
		},
		"objects failed": {
			change: func(in *migration.Input) {
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{
					progress("things.example.com", failed(time.Minute))}
			},
			reason: v1alpha1.ReasonStorageMigrationFailed, recheck: 9 * time.Minute,
			says: []string{"2 objects of things.example.com could not be stored again as v1", "a/b: denied",
				"Correct these objects"},
			progress: []v1alpha1.StorageMigrationProgress{progress("things.example.com", failed(time.Minute))},
		},
		"objects failed, and another definition goes on": {
			change: func(in *migration.Input) {
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{
					progress("things.example.com", failed(time.Minute))}
				in.Definitions[1].Stored = []string{"v1alpha1", "v1"}
			},
			migrate: "bells.example.com", reason: v1alpha1.ReasonProgressing,
			progress: []v1alpha1.StorageMigrationProgress{progress("things.example.com", failed(time.Minute)),
				progress("bells.example.com", func(p *v1alpha1.StorageMigrationProgress) {
					p.StartTime = metav1.NewTime(now)
				})},
		},
		"objects failed, and are tried again": {
			change: func(in *migration.Input) {
				in.Install.Status.StorageMigrations = []v1alpha1.StorageMigrationProgress{
					progress("things.example.com", failed(10*time.Minute))}
			},
			migrate: "things.example.com", reason: v1alpha1.ReasonProgressing,
			progress: []v1alpha1.StorageMigrationProgress{begun},
		},
		"no version is served": {
			change:  func(in *migration.Input) { in.Definitions[0].Version = "" },
			reason:  v1alpha1.ReasonStorageMigrationFailed,
			recheck: 10 * time.Minute, says: []string{"No version of things.example.com is served"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			if test.change != nil {
				test.change(&in)
			}
			got := migration.Next(in)
			var migrate, reason, message string
			if got.Migrate != nil {
				migrate = got.Migrate.Name()
			}
			if got.Condition != nil {
				reason, message = got.Condition.Reason, got.Condition.Message
				isTrue := got.Condition.Status == metav1.ConditionTrue
				if isTrue != (reason == v1alpha1.ReasonSucceeded) {
					t.Errorf("the condition is %s with reason %s", got.Condition.Status, reason)
				}
			}
			if migrate != test.migrate || reason != test.reason || got.RecheckAfter != test.recheck {
				t.Errorf("migrate %q, %s, recheck after %s; want %q, %s, %s", migrate, reason, got.RecheckAfter,
					test.migrate, test.reason, test.recheck)
			}
			for _, text := range test.says {
				if !strings.Contains(message, text) {
					t.Errorf("the message does not say %q: %s", text, message)
				}
			}
			if diff := cmp.Diff(test.progress, got.Progress); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgressIsBounded(t *testing.T) {
	in := newInput()
	for i := range 20 {
		in.Install.Status.StorageMigrations = append(in.Install.Status.StorageMigrations,
			progress(fmt.Sprintf("r%d.example.com", i), nil))
	}
	got := migration.Next(in)
	if len(got.Progress) != 20 || got.CurrentProgress() == nil || got.Progress[0].Resource != "r1.example.com" {
		t.Errorf("%d entries, the first for %s, with the present one %v", len(got.Progress), got.Progress[0].Resource,
			got.CurrentProgress())
	}
}

func TestInterrupted(t *testing.T) {
	in := newInput()
	got := migration.Next(in)
	got.SetInterrupted(in, errors.New("connection refused"))
	if got.Condition.Reason != v1alpha1.ReasonStorageMigrationFailed ||
		!strings.Contains(got.Condition.Message, "things.example.com was interrupted: connection refused.") {
		t.Errorf("%s: %s", got.Condition.Reason, got.Condition.Message)
	}
}

func TestObserve(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Generation, crd.Spec.Group, crd.Spec.Names.Plural = 3, "example.com", "things"
	crd.Status.StoredVersions = []string{"v1alpha1", "v1"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1alpha1", Served: true}, {Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}}
	want := migration.Definition{Group: "example.com", Plural: "things", Version: "v1", Storage: "v1",
		Stored: []string{"v1alpha1", "v1"}, Generation: 3}
	if diff := cmp.Diff(want, migration.Observe(crd)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	crd.Spec.Versions[2].Served = false
	if got := migration.Observe(crd); got.Version != "v1alpha1" || got.Storage != "v1" {
		t.Errorf("the storage version is not served: %+v", got)
	}
}
