// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery decides which FleetClusters exist for the objects of other systems that represent a cluster, which
// fields come from these objects, and when a FleetCluster is deleted. It is pure: its input is an observation, and its
// output is the content to write.
//
// The objects are Hive's ClusterDeployment, the ClusterProfile of SIG Multicluster, and the Cluster of Cluster API.
// Each of them is converted to a Source. ClusterDeployments are decoded with Hive's types. The other objects are read
// field by field, so that every version of their APIs with these fields works.
package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Input has all data that the decision about one name depends on.
type Input struct {
	Now time.Time
	// Name is the name of the FleetCluster.
	Name string
	// Cluster is nil if there is no FleetCluster with this name.
	Cluster *v1alpha1.FleetCluster
	// Known is true if the hub sees all objects of the kind in the cluster's sourceRef. If it is false, a missing
	// object means nothing.
	Known bool
	// Empty is true if there is no object of that kind.
	Empty bool
	// Own is the source in the cluster's sourceRef; nil if it does not exist.
	Own *Source
	// Rival is an older FleetCluster with the same source in its sourceRef; empty if there is none.
	Rival string
	// Candidates are the sources with this default name that no FleetCluster references, in any order.
	Candidates []Source
	Options    Options
}

// Options are the users' configuration.
type Options struct {
	// Labels maps each label of a FleetCluster to the field of the source that the label's value comes from.
	Labels map[string]string
	// Selector selects the sources that become FleetClusters. It does not affect a FleetCluster that exists. nil
	// selects all.
	Selector labels.Selector
}

// DefaultLabels returns the mapping of labels that is used if users configure none.
func DefaultLabels() map[string]string {
	return map[string]string{"platform": "platform", "region": "region", "version": "version"}
}

// Decision has the changes for one name.
type Decision struct {
	// Write is what the FleetCluster must have of the source; nil if it is already correct.
	Write *Content
	// Delete deletes the FleetCluster, which is then offboarded as its spec says.
	Delete bool
	// Status is the new status.source.
	Status *v1alpha1.ClusterSource
	// Refused are sources that do not become a FleetCluster until a person acts.
	Refused []Refusal
}

// Content has the fields of a FleetCluster that come from its source.
type Content struct {
	// Ref is set if this controller creates, or created, the FleetCluster. It does not write the sourceRef of
	// other FleetClusters.
	Ref *v1alpha1.SourceReference
	// Labels are the mapped labels. Labels with another owner are not written: see SelectUnownedLabels.
	Labels map[string]string
}

// Refusal says why a source does not become a FleetCluster.
type Refusal struct {
	Source  Source
	Reason  string
	Message string
}

// Reasons of refusals, for Events on the source.
const (
	ReasonNameTaken   = "FleetClusterNameTaken"
	ReasonNameInvalid = "FleetClusterNameInvalid"
)

// IsCreatedHere reports whether this controller created the FleetCluster. It never deletes another FleetCluster.
func IsCreatedHere(c *v1alpha1.FleetCluster) bool {
	return c.Annotations[v1alpha1.AnnotationDiscovered] == "true"
}

// Next decides what to change for one name. A FleetCluster that is being deleted is unchanged.
//
//	no FleetCluster ──── created for the oldest source that is ready; the others are refused
//	without sourceRef ── created by a person: unchanged; sources with its name are refused
//	source present ───── its labels and power state are copied
//	source paused or relocating ── only the status is changed
//	  source gone after that ────── it was moved: the FleetCluster is kept
//	source deleted ───── the FleetCluster is deleted if it was created here, else kept
//	kind of the source not known to the hub ── nothing is changed
func Next(in Input) Decision {
	eligible := listEligible(in)
	if in.Cluster == nil {
		return createCluster(in, eligible)
	}
	if in.Cluster.DeletionTimestamp != nil {
		return Decision{Status: in.Cluster.Status.Source}
	}
	d := Decision{Status: in.Cluster.Status.Source.DeepCopy()}
	if in.Cluster.Spec.SourceRef == nil {
		d.Status = nil
		if len(eligible) > 0 {
			d.Status = &v1alpha1.ClusterSource{Message: unlinked}
		}
	} else {
		followSource(in, &d)
	}
	refuse(in, eligible, &d)
	return d
}

// unlinked is the message for a FleetCluster without a sourceRef that has the name of sources.
const unlinked = "other sources have this name: to let this FleetCluster follow one of them, set spec.sourceRef; to " +
	"have another FleetCluster for one of them, create it with another name and that spec.sourceRef"

// listEligible returns the candidates that can become a FleetCluster, the oldest first.
func listEligible(in Input) []Source {
	var all []Source
	for _, s := range in.Candidates {
		if isSelected(in.Options.Selector, s) && s.NotReady == "" && !s.Deleting && !s.Paused && !s.Relocating {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(SourceKey(a.Ref), SourceKey(b.Ref)))
	})
	return all
}

// isSelected reports whether a source is selected to become a FleetCluster.
func isSelected(selector labels.Selector, s Source) bool {
	return s.Labels[v1alpha1.LabelDiscover] != "false" && (selector == nil || selector.Matches(labels.Set(s.Labels)))
}

// createCluster returns the decision for a name without a FleetCluster: a FleetCluster is created for the oldest
// candidate, and the other candidates are refused.
func createCluster(in Input, candidates []Source) Decision {
	var d Decision
	if len(candidates) == 0 {
		return d
	}
	if problems := checkName(in.Name); problems != "" {
		for _, s := range candidates {
			d.Refused = append(d.Refused, Refusal{Source: s, Reason: ReasonNameInvalid, Message: fmt.Sprintf(
				"The name %q cannot be the name of a FleetCluster: %s. To add the cluster to the fleet, create a "+
					"FleetCluster with another name whose spec.sourceRef names this object.", in.Name, problems)})
		}
		return d
	}
	source := candidates[0]
	in.Own, in.Cluster = &source, &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: in.Name,
		Annotations: map[string]string{v1alpha1.AnnotationDiscovered: "true"}},
		Spec: v1alpha1.FleetClusterSpec{SourceRef: &source.Ref}}
	followPresent(in, &d)
	// A new FleetCluster is always written, even without labels.
	d.Write = &Content{Ref: &source.Ref, Labels: d.Write.readLabels()}
	refuse(in, candidates[1:], &d)
	return d
}

// maxName is the maximum length of a FleetCluster's name.
const maxName = 50

// checkName says why a name cannot be the name of a FleetCluster. It returns "" if it can.
func checkName(name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return strings.Join(problems, "; ")
	}
	if len(name) > maxName {
		return fmt.Sprintf("it has %d characters, and %d are allowed", len(name), maxName)
	}
	return ""
}

// refuse records refusals for the candidates, because the name already belongs to a FleetCluster, and lists the
// candidates in the status.
func refuse(in Input, candidates []Source, d *Decision) {
	var clashes []v1alpha1.SourceReference
	for _, s := range candidates {
		owner := "was made by hand"
		if ref := in.Cluster.Spec.SourceRef; ref != nil {
			owner = "is that of " + DescribeSource(*ref)
		}
		d.Refused = append(d.Refused, Refusal{Source: s, Reason: ReasonNameTaken, Message: fmt.Sprintf(
			"FleetCluster %s %s, so this cluster is not in the fleet. To add it, create a FleetCluster with another "+
				"name whose spec.sourceRef names this object.", in.Name, owner)})
		if len(clashes) < maxClashes {
			clashes = append(clashes, s.Ref)
		}
	}
	if d.Status != nil {
		d.Status.Clashes = clashes
	}
}

// maxClashes is the API's limit for the candidates in the status.
const maxClashes = 10

// followSource decides about a FleetCluster with a sourceRef.
func followSource(in Input, d *Decision) {
	switch {
	case !in.Known: // the hub cannot tell whether the source exists, so nothing changes
	case in.Rival != "":
		d.Status = &v1alpha1.ClusterSource{State: v1alpha1.SourceTaken, Message: fmt.Sprintf(
			"FleetCluster %s is older and names the same source: change spec.sourceRef of one of them", in.Rival)}
	case in.Own == nil:
		handleVanished(in, d)
	case in.Own.Deleting && !in.Own.Paused && !in.Own.Relocating:
		handleGone(in, d, "is being deleted")
	default:
		followPresent(in, d)
	}
}

// handleVanished decides about a FleetCluster whose source does not exist. If the source was paused or relocating, it
// was moved, and the FleetCluster is kept. If no object of the kind exists, this is treated as a mistake, and the
// FleetCluster is kept. Otherwise the cluster was removed.
func handleVanished(in Input, d *Decision) {
	ref := *in.Cluster.Spec.SourceRef
	previous := in.Cluster.Status.Source
	if previous == nil {
		previous = &v1alpha1.ClusterSource{}
	}
	switch { // SourceMoved keeps its state in later passes
	case previous.State == v1alpha1.SourcePaused, previous.State == v1alpha1.SourceRelocating,
		previous.State == v1alpha1.SourceMoved:
		d.Status = keepStatus(previous, v1alpha1.SourceMoved, DescribeSource(ref)+
			" was paused or relocating when it vanished, so it was moved to another management cluster. "+
			"The cluster stays in the fleet; to remove it, delete the "+
			"FleetCluster")
	case in.Empty:
		d.Status = keepStatus(previous, v1alpha1.SourceMissing,
			fmt.Sprintf("the hub sees no %s at all, which is treated as a "+
				"mistake, so nothing is removed. If the cluster is gone, delete the FleetCluster", ref.Kind))
	default:
		handleGone(in, d, "does not exist")
	}
}

// handleGone decides about a source whose cluster was removed: it deletes a FleetCluster that this controller created,
// and keeps other FleetClusters. state says what happened to the source.
func handleGone(in Input, d *Decision, state string) {
	if IsCreatedHere(in.Cluster) {
		d.Delete = true
		return
	}
	previous := in.Cluster.Status.Source
	if previous == nil {
		previous = &v1alpha1.ClusterSource{}
	}
	d.Status = keepStatus(previous, v1alpha1.SourceMissing,
		fmt.Sprintf("%s %s. The FleetCluster was made by hand, so that it "+
			"is kept; to remove the cluster from the fleet, delete it", DescribeSource(*in.Cluster.Spec.SourceRef),
			state))
}

// keepStatus returns the status of a FleetCluster whose source does not exist. The status has no power state, because
// nothing reports it.
func keepStatus(previous *v1alpha1.ClusterSource, state v1alpha1.SourceState, message string) *v1alpha1.ClusterSource {
	return &v1alpha1.ClusterSource{State: state, Message: message, Labels: previous.Labels}
}

// followPresent decides about a source that exists: it sets the status and, unless the source is paused or relocating,
// the labels to write. Write is nil if the FleetCluster already has these labels.
func followPresent(in Input, d *Decision) {
	previous := in.Cluster.Status.Source
	if previous == nil {
		previous = &v1alpha1.ClusterSource{}
	}
	status := &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent, PowerState: in.Own.PowerState,
		PowerStateSince: previous.PowerStateSince, Labels: previous.Labels}
	if status.PowerState != previous.PowerState || status.PowerStateSince == nil {
		status.PowerStateSince = &metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}
	}
	if status.PowerState == "" {
		status.PowerStateSince = nil
	}
	d.Status = status
	switch {
	case in.Own.Relocating:
		status.State = v1alpha1.SourceRelocating
		status.Message = "it is being moved to another management cluster: rollouts defer the cluster until that ends"
	case in.Own.Paused:
		status.State = v1alpha1.SourcePaused
		status.Message = "its owner paused it: rollouts defer the cluster until it is resumed"
	default:
		mapped, problems := MapLabels(in.Options.Labels, in.Own.Fields)
		status.Message = phrase.Truncate(strings.Join(problems, "; "), maxMessage)
		if IsCreatedHere(in.Cluster) {
			d.Write = &Content{Ref: in.Cluster.Spec.SourceRef, Labels: mapped}
		} else {
			d.Write = &Content{Labels: mapped}
		}
		if isWritten(in.Cluster.Labels, previous.Labels, mapped) {
			d.Write = nil
		}
	}
}

const maxMessage = 1024

// readLabels returns the labels; nil if c is nil.
func (c *Content) readLabels() map[string]string {
	if c == nil {
		return nil
	}
	return c.Labels
}

// isWritten reports whether a FleetCluster needs no write for the wanted labels: it has these labels, or labels of
// other owners in their place. previous are the labels that were set from the source before.
func isWritten(existing, previous, wanted map[string]string) bool {
	for key, value := range wanted {
		current, exists := existing[key]
		previousValue, wasMapped := previous[key]
		isChanged := previousValue != value || current != value
		if !exists || wasMapped && isChanged {
			return false
		}
	}
	for key := range previous {
		if _, isWanted := wanted[key]; !isWanted {
			return false
		}
	}
	return true
}

// MapLabels returns the labels for the fields of a source. A field that the source does not have makes no label.
// problems describes the values that cannot be labels.
func MapLabels(mapping, fields map[string]string) (mapped map[string]string, problems []string) {
	mapped = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		// Versions of some distributions have a plus sign: v1.31.2+k3s1.
		value := strings.ReplaceAll(fields[mapping[key]], "+", "_")
		if value == "" {
			continue
		}
		if invalid := validation.IsValidLabelValue(value); len(invalid) > 0 {
			problems = append(problems, fmt.Sprintf("its %s cannot be the value of label %s: %s", mapping[key], key,
				invalid[0]))
			continue
		}
		mapped[key] = value
	}
	return mapped, problems
}
