// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// missingVersion is a version of the sample operator whose image no cluster can pull. It follows 1.0.0.
const missingVersion = "1.0.1"

// steeringFaults are what people do to a rollout while it runs, and a release that cannot run.
func steeringFaults() map[string]fault {
	return map[string]fault{
		"label that moves the cluster to another wave": {
			inject: (*trial).moveToAnotherWave,
			shows:  rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonGated),
			why:    []string{"Waiting (Gated)", "bellwether rollout approve"},
			holds: []func(*trial) error{(*trial).isInFirstWave,
				says([]string{"first", "Gated"}, "rollout", "get", "OPERATOR")},
			heal: func(x *trial) {
				x.run("rollout", "approve", "OPERATOR", "--reason", "the canary is fine")
				x.until("the cluster is updated in its wave", patience, (*trial).endsInFirstWave)
				x.undoAll()
			},
		},
		"rollout aborted, and then rolled back": {
			inject: func(x *trial) {
				x.soak()
				x.run("rollout", "abort", "OPERATOR", "--reason", "ticket 4712")
			},
			shows: operatorHas(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAborted),
			why:   []string{"Waiting (Aborted)", "ticket 4712"},
			holds: []func(*trial) error{says([]string{"Aborted", "ticket 4712"}, "rollout", "get", "OPERATOR"),
				hasEvents(1, "Aborted in rollout")},
			heal: func(x *trial) {
				x.run("rollout", "rollback", "OPERATOR", "--reason", "ticket 4713")
				x.until("the rollout is rolled back", patience, (*trial).isRolledBack)
				x.undoAll()
			},
		},
		"rollout deleted while it runs": {
			inject: (*trial).deleteRollout,
			holds: []func(*trial) error{hasEvents(1, "was deleted while Progressing"), (*trial).isInHistory,
				(*trial).isSoaking}, // another rollout of the release was made
			heal: (*trial).undoAll,
		},
		"image that does not exist": {
			inject: (*trial).releaseMissingImage,
			shows:  operatorHas(v1alpha1.ConditionVersionHeld, metav1.ConditionTrue, v1alpha1.ReasonVersionHeld),
			why:    []string{"VersionHeld", missingVersion},
			holds: []func(*trial) error{(*trial).isRolledBack, (*trial).stands, (*trial).keepsService,
				says([]string{"Held:", missingVersion}, "operator", "get", "OPERATOR")},
			heal: (*trial).undoAll,
		},
		"unsigned image under the tag of the catalog": { // after "unsigned catalog": the hub remembers what it verified
			inject: (*trial).moveTag,
			shows:  catalogHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSignatureMissing),
			why:    []string{v1alpha1.ReasonSignatureMissing},
			holds:  []func(*trial) error{(*trial).keepsDigest, (*trial).stands}, heal: (*trial).undoAll,
		},
	}
}

// moveToAnotherWave changes a label of the cluster after a rollout has put it into the first wave, which waits for an
// approval: by the label it would be in the second one, which waits for nothing.
func (x *trial) moveToAnotherWave() {
	x.t.Helper()
	const label = "trial.example.com/moved"
	x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Strategy.Waves = []v1alpha1.Wave{{Name: "first", Gates: []v1alpha1.Gate{{Name: "sre",
			Approval: &v1alpha1.ApprovalGate{}}}, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.
			LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpDoesNotExist}}}}, {Name: "second"}}
		greeting("with two waves")(s)
	})
	x.until("the first wave waits for an approval", patience,
		rolloutHas(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonGated))
	x.editCluster(func(c *v1alpha1.FleetCluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, label, "yes") })
}

// isInFirstWave returns nil if the newest rollout has not admitted the cluster, and has it in its first wave.
func (x *trial) isInFirstWave() error {
	ro, err := x.newestRollout()
	if err != nil {
		return err
	}
	oi, err := x.read()
	switch {
	case err != nil:
		return err
	case oi.Labels[v1alpha1.LabelRollout] != ro.Name || oi.Labels[v1alpha1.LabelWave] != "first":
		return fmt.Errorf("the labels of the OperatorInstall are %v", oi.Labels)
	case oi.Spec.Admission.RolloutUID == string(ro.UID):
		return fmt.Errorf("%s has admitted the cluster without an approval", ro.Name)
	}
	return nil
}

// endsInFirstWave returns nil if the newest rollout has succeeded, with the cluster in its first wave.
func (x *trial) endsInFirstWave() error {
	ro, err := x.newestRollout()
	switch {
	case err != nil:
		return err
	case ro.Status.Phase != v1alpha1.RolloutSucceeded || len(ro.Status.Waves) != 2:
		return fmt.Errorf("%s is %s: %s", ro.Name, ro.Status.Phase, ro.Status.Message)
	case ro.Status.Waves[0].Succeeded != 1 || ro.Status.Waves[1].Phase != v1alpha1.WaveSkipped:
		return fmt.Errorf("the waves are %+v", ro.Status.Waves)
	}
	return nil
}

// isRolledBack returns nil if the newest rollout is a rollback that has succeeded.
func (x *trial) isRolledBack() error {
	ro, err := x.newestRollout()
	switch {
	case err != nil:
		return err
	case ro.Spec.Rollback == nil || ro.Status.Phase != v1alpha1.RolloutSucceeded:
		return fmt.Errorf("%s is %s: %s", ro.Name, ro.Status.Phase, ro.Status.Message)
	}
	return nil
}

// deleteRollout deletes the OperatorRollout while its wave soaks.
func (x *trial) deleteRollout() {
	x.t.Helper()
	x.soak()
	ro, err := x.newestRollout()
	x.must(err)
	x.must(x.hub.Delete(x.ctx(), ro))
}

// isInHistory returns nil if the operator's history has the rollout that was deleted.
func (x *trial) isInHistory() error {
	history := x.managed().Status.History
	for _, outcome := range history {
		if outcome.Deleted && outcome.Phase == v1alpha1.RolloutProgressing {
			return nil
		}
	}
	return fmt.Errorf("the history is %+v", history)
}

// hasEvents returns a function that returns nil if so many Events about the operator, and about its rollouts, contain a
// text.
func hasEvents(want int, text string) func(*trial) error {
	return func(x *trial) error {
		var list eventsv1.EventList
		if err := x.hub.List(x.ctx(), &list, client.InNamespace(x.key.Namespace)); err != nil {
			return err
		}
		var found []string
		for _, e := range list.Items {
			if strings.HasPrefix(e.Regarding.Name, x.key.Name) && strings.Contains(e.Note, text) {
				found = append(found, fmt.Sprintf("%s of %s: %s", e.Reason, e.Regarding.Name, e.Note))
			}
		}
		if len(found) != want {
			return fmt.Errorf("want %d Events that contain %q, got %q", want, text, found)
		}
		return nil
	}
}

// releaseMissingImage offers a version whose image does not exist, and rolls it out with a deadline. undoAll offers it
// no more.
func (x *trial) releaseMissingImage() {
	x.t.Helper()
	bundle := filepath.Join("bundles", missingVersion)
	x.changeLadder("the version is withdrawn", func(author *platform.Author, file string) {
		dir := filepath.Join(author.Dir, bundle)
		x.undo = append(x.undo, func() { x.must(os.RemoveAll(dir)) })
		x.must(writeMissing(dir))
		image := shared.Registry + "/bundles/" + x.key.Name + ":" + missingVersion
		x.must(author.Run(x.ctx(), "bundle", "push", bundle, image))
		x.must(author.Run(x.ctx(), "catalog", "add", "ladders", image))
		x.must(author.Run(x.ctx(), "catalog", "promote", file, missingVersion, "--to", "stable"))
	})
	x.edit(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Version, s.Strategy.OnFailure = missingVersion, v1alpha1.FailureRollback
		s.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Deadline: seconds(90)}}
	})
	x.until("why names the image", patience, func(x *trial) error {
		return x.prints([]string{"the image " + platform.MissingImage + " cannot be pulled"})
	})
}

// keepsService returns nil if the Service of the operator is there, which both versions bring (docs/olm.md, fact 26).
func (x *trial) keepsService() error {
	service := &corev1.Service{}
	err := x.local.Get(x.ctx(), client.ObjectKey{Namespace: x.key.Name, Name: "echo-operator"}, service)
	if err != nil {
		return err
	}
	owners := service.OwnerReferences
	if len(owners) != 1 || owners[0].Name != "echo-operator.v1.0.0" {
		return fmt.Errorf("the owners of the Service are %+v", owners)
	}
	return nil
}

// writeMissing writes the bundle of the version whose image does not exist: that of 1.0.0, with another image.
func writeMissing(dir string) error {
	names := strings.NewReplacer("example.com/bellwether/echo-operator:1.0.0", platform.MissingImage, "1.0.0",
		missingVersion)
	return fs.WalkDir(echo.Bundles(), "1.0.0", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(echo.Bundles(), path)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, strings.TrimPrefix(path, "1.0.0"))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(names.Replace(string(text))), 0o600)
	})
}

// moveTag has the tag of the catalog, whose signature is required, lead to a bundle that nobody has signed; undoAll
// publishes the catalog again.
func (x *trial) moveTag() {
	x.t.Helper()
	author, err := shared.Author(x.ctx(), x.key.Name)
	x.must(err)
	x.editCatalog(func(s *v1alpha1.OperatorCatalogSpec) { s.Verification = x.verification(x.key.Name) })
	x.until("the signature is verified", patience, func(x *trial) error {
		oc := x.catalog()
		return isReady(oc, oc.Status.Conditions)
	})
	x.digest = x.catalog().Status.Digest
	x.undo = append(x.undo, func() {
		x.must(author.Run(x.ctx(), "catalog", "publish", "catalog", author.Ref, "--key", "release.key",
			"--force", "the tag was moved"))
	})
	x.must(author.Run(x.ctx(), "bundle", "push", filepath.Join("bundles", "1.1.0"), author.Ref))
}

// keepsDigest returns nil if the hub uses the catalog that was there before.
func (x *trial) keepsDigest() error {
	if now := x.catalog().Status.Digest; now != x.digest || now == "" {
		return fmt.Errorf("the digest is %q, and was %q", now, x.digest)
	}
	return nil
}

func (x *trial) catalog() *v1alpha1.OperatorCatalog {
	x.t.Helper()
	oc := &v1alpha1.OperatorCatalog{}
	x.must(x.hub.Get(x.ctx(), x.key, oc))
	return oc
}
