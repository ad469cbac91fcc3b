// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	fleetcommand "github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fleet"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/fleet"
)

const adoptLong = `Take over an operator that others have installed with OLM, where it is: nothing is
uninstalled, no pod restarts, and no version changes by it.

The command shows first what it would do, from what the agents report (fleet scan): which
clusters would be taken over in which version, and which are refused and why. After a
confirmation it makes a ManagedOperator for the package, or changes the one of that name.
A rollout then takes the clusters over wave by wave, in the versions that they have. It
stops at the first cluster that is refused. When it has succeeded, a second rollout brings
the operator to the version that the ManagedOperator asks for: the head of the channel, or
--version. That rollout also installs the operator on selected clusters that do not have it.

The namespace, the install mode and the settings are those of the installs, and so is the
channel that most of them follow, if the catalog has it. Some findings can be accepted:
with --accept GitOps, say, an operator is taken over although another tool writes its
Subscription. Such a finding stays as it is on the cluster.

With -o yaml the manifest is printed for a Git repository, and nothing is changed.

With --undo, NAME is a ManagedOperator. Each Subscription that was taken over gets back
what it was before: its source, channel and approval. Then the ManagedOperator is deleted.
No version changes by that, and no pod restarts. Bellwether waits for clusters that are
offline. Only users with the ClusterRole bellwether-remove can do this.`

// adoptOptions are the flags of operator adopt.
type adoptOptions struct {
	subject                                   string
	name, catalog, channel, version, selector string
	accept                                    []string
	allClusters, dryRun, undo                 bool
	timeout                                   time.Duration
	confirmation                              command.Confirmation
	out                                       command.Output
}

func (a *app) newAdoptCommand() *cobra.Command {
	var o adoptOptions
	c := &cobra.Command{
		Use: "adopt PACKAGE|NAME", Short: "Take over an operator that others have installed, without changing it",
		Long: adoptLong,
		Args: command.OneArg("the package, or the name of a ManagedOperator"),
		Example: "  bellwether operator adopt cert-manager --selector env=prod\n" +
			"  bellwether operator adopt cert-manager --selector env=prod --version 1.14.x -o yaml\n" +
			"  bellwether operator adopt cert-manager --accept GitOps\n" +
			"  bellwether operator adopt cert-manager --undo",
		ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			o.subject = args[0]
			if err := o.checkFlags(c); err != nil {
				return err
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			if o.undo {
				return a.undoAdoption(c.Context(), h, o)
			}
			return a.adopt(c.Context(), h, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "The clusters that a new ManagedOperator selects, by their labels.")
	f.BoolVar(&o.allClusters, "all-clusters", false, "A new ManagedOperator selects every cluster of the fleet.")
	f.StringVar(&o.name, "name", "", "The name of a new ManagedOperator. Default: the package.")
	f.StringVar(&o.catalog, "catalog", "",
		"The OperatorCatalog. Default: the one of the namespace that has the package.")
	f.StringVar(&o.channel, "channel", "", "The channel. Default: the one that most of the clusters follow.")
	f.StringVar(&o.version, "version", "",
		"The version, or range of versions, to go on to. Default: the head of the channel.")
	f.StringArrayVar(&o.accept, "accept", nil, "Take over although a cluster has this `FINDING`. "+
		"Can be repeated. One of "+strings.Join(listAcceptable(), ", ")+".")
	f.BoolVar(&o.dryRun, "dry-run", false, "Show what would be done, and change nothing.")
	f.BoolVar(&o.undo, "undo", false, "Put back what was there before, and delete the ManagedOperator.")
	command.AddTimeout(c, &o.timeout, 10*time.Minute, "With --undo: the timeout of the wait.")
	o.confirmation.Add(c)
	o.out.Add(c, command.OutputYAML, command.OutputJSON)
	_ = c.RegisterFlagCompletionFunc("accept",
		cobra.FixedCompletions(listAcceptable(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// listAcceptable returns the findings that can be accepted.
func listAcceptable() []string {
	var out []string
	for _, reason := range adoption.ListAcceptable() {
		out = append(out, string(reason))
	}
	return out
}

// checkVersion returns an error if a version is not valid as spec.version of a ManagedOperator.
func checkVersion(version string) error {
	if _, err := semver.Parse(version); version == "" || err == nil {
		return nil
	}
	if _, err := catalogs.ParseRange(version); err != nil {
		return exit.Hintf("write a version such as 1.14.2, or a range such as 1.14.x", "invalid value of --version: %v",
			err)
	}
	return nil
}

// newOperatorFlags are the flags that only affect a new ManagedOperator.
var newOperatorFlags = []string{"selector", "all-clusters", "name", "catalog", "channel", "version"}

// checkFlags returns an error if values of flags are invalid or flags exclude each other.
func (o *adoptOptions) checkFlags(c *cobra.Command) error {
	if err := o.out.Check(); err != nil {
		return err
	}
	if o.selector != "" && o.allClusters {
		return exit.Hintf("use one of them", "set --selector or --all-clusters, not both")
	}
	for _, reason := range o.accept {
		if !slices.Contains(listAcceptable(), reason) {
			return exit.Hintf("use one of "+strings.Join(listAcceptable(), ", "), "invalid value %q of --accept",
				reason)
		}
	}
	if err := checkVersion(o.version); err != nil {
		return err
	}
	if !o.undo {
		return nil
	}
	for _, flag := range append([]string{"accept", "output"}, newOperatorFlags...) {
		if c.Flags().Changed(flag) {
			return exit.Hintf("leave one of them out", "--%s has no effect with --undo", flag)
		}
	}
	return nil
}

// buildRequest converts the flags to an AdoptionRequest.
func (o *adoptOptions) buildRequest() (fleet.AdoptionRequest, error) {
	request := fleet.AdoptionRequest{Package: o.subject, Catalog: o.catalog, Channel: o.channel, Version: o.version}
	for _, reason := range o.accept {
		if !slices.Contains(request.Accept, v1alpha1.AcceptedFinding(reason)) {
			request.Accept = append(request.Accept, v1alpha1.AcceptedFinding(reason))
		}
	}
	switch {
	case o.allClusters:
		request.Selector = &metav1.LabelSelector{}
	case o.selector != "":
		if _, err := command.ParseSelector(o.selector); err != nil {
			return request, err
		}
		selector, err := metav1.ParseToLabelSelector(o.selector)
		if err != nil {
			return request, fmt.Errorf("read --selector: %w", err)
		}
		request.Selector = selector
	}
	return request, nil
}

// propose returns the ManagedOperator to create or change, and the existing ManagedOperator, which is nil for a new
// one. It returns an error if the ManagedOperator exists and flags are set that only affect a new ManagedOperator.
func (a *app) propose(ctx context.Context, h *hub.Client, o adoptOptions) (*fleet.AdoptionProposal,
	*v1alpha1.ManagedOperator, error) {
	request, err := o.buildRequest()
	if err != nil {
		return nil, nil, err
	}
	key := h.Key(o.subject)
	if o.name != "" {
		key = client.ObjectKey{Namespace: h.Namespace, Name: o.name}
	}
	existing := &v1alpha1.ManagedOperator{}
	switch err := h.Get(ctx, key, existing); {
	case apierrors.IsNotFound(err):
		existing = nil
	case err != nil:
		return nil, nil, fmt.Errorf("get operator %s: %w", key.Name, err)
	default:
		request.Package = existing.Spec.Package
	}
	scans, err := fleetcommand.ReadScans(ctx, h, request.Package)
	if err != nil {
		return nil, nil, err
	}
	if existing != nil {
		if request.Selector != nil || o.catalog != "" || o.channel != "" || o.version != "" {
			return nil, nil, exit.Hintf("change its spec, or set --name to make another one",
				"ManagedOperator %s is there already: --%s are for a new one", key.Name,
				strings.Join(newOperatorFlags, ", --"))
		}
		return scans.ProposeAdoptionBy(existing, request.Accept), existing, nil
	}
	p, err := scans.ProposeAdoption(key, request)
	return p, nil, addProposalHint(err, request.Package)
}

// adopt shows the proposal and, after a confirmation, creates or changes the
// ManagedOperator. With -o it only prints the manifest.
func (a *app) adopt(ctx context.Context, h *hub.Client, o adoptOptions) error {
	p, existing, err := a.propose(ctx, h, o)
	if err != nil {
		return err
	}
	if o.out.Format != command.OutputTable {
		manifest, err := buildManifest(p.Operator)
		if err != nil {
			return err
		}
		return o.out.Object(a.Streams.Out, manifest)
	}
	a.Say("%s", formatProposal(p, a.Style()))
	count := countTakenOver(p)
	switch {
	case count == 0:
		return exit.Hintf("do what is said for one of the clusters, and look again",
			"nothing was changed: no cluster can be taken over")
	case o.dryRun:
		a.Say("\nNothing was changed.\n")
		return nil
	}
	a.Say("\n")
	if err := a.Confirm(o.confirmation, describeEffect(p)); err != nil {
		return err
	}
	if err := createOrPatch(ctx, h, p.Operator, existing); err != nil {
		return err
	}
	action := "changed"
	if p.IsNew {
		action = "made"
	}
	a.Step("%s ManagedOperator %s: a rollout takes over what is installed", action, p.Operator.Name)
	a.Say("To watch it, run `%s rollout get %s -n %s -w`.\n", a.Self, p.Operator.Name, p.Operator.Namespace)
	return nil
}

// createOrPatch creates the ManagedOperator o, or changes existing to o if existing is not nil.
func createOrPatch(ctx context.Context, h *hub.Client, o, existing *v1alpha1.ManagedOperator) error {
	if existing == nil {
		if err := h.Create(ctx, o, hub.FieldOwner); err != nil {
			return fmt.Errorf("make ManagedOperator %s: %w", o.Name, err)
		}
		return nil
	}
	patch := client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{})
	if err := h.Patch(ctx, o, patch, hub.FieldOwner); err != nil {
		return fmt.Errorf("change ManagedOperator %s: %w", o.Name, err)
	}
	return nil
}

// buildManifest returns the ManagedOperator without the fields that the API server and the hub write, for Git.
func buildManifest(o *v1alpha1.ManagedOperator) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode ManagedOperator %s: %w", o.Name, err)
	}
	metadata := map[string]any{"namespace": o.Namespace, "name": o.Name}
	for key, value := range map[string]map[string]string{"labels": o.Labels, "annotations": o.Annotations} {
		if len(value) == 0 {
			continue
		}
		copied := map[string]any{}
		for k, v := range value {
			copied[k] = v
		}
		metadata[key] = copied
	}
	fields["metadata"] = metadata
	delete(fields, "status")
	for _, field := range []string{"strategy", "install"} { // the encoder writes these fields even if they are empty
		if nested, found, _ := unstructured.NestedMap(fields, "spec", field); found && len(nested) == 0 {
			unstructured.RemoveNestedField(fields, "spec", field)
		}
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ManagedOperator"))
	return u, nil
}

// undoAdoption restores the original Subscriptions, and deletes the ManagedOperator.
func (a *app) undoAdoption(ctx context.Context, h *hub.Client, o adoptOptions) error {
	operator, err := h.Operator(ctx, o.subject)
	if err != nil {
		return err
	}
	if operator.DeletionTimestamp != nil {
		return a.continueUndo(ctx, operator, h, o)
	}
	installs, err := hub.ListInstalls(ctx, h, client.ObjectKeyFromObject(operator))
	if err != nil {
		return err
	}
	a.Say("%s", formatUndo(operator, installs, a.Now(), a.Style()))
	if !slices.ContainsFunc(installs, func(i v1alpha1.OperatorInstall) bool { return i.Status.Adopted != nil }) {
		return exit.Hintf("to stop managing it, delete the ManagedOperator: its removalPolicy says what happens",
			"nothing was changed: no cluster reports that operator %s was taken over there", operator.Name)
	}
	if o.dryRun {
		a.Say("\nNothing was changed.\n")
		return nil
	}
	if err := a.Require(ctx, h, "delete operator "+operator.Name,
		command.NewRemovePermission("managedoperators", operator.Namespace, operator.Name)); err != nil {
		return err
	}
	a.Say("\n")
	if err := a.Confirm(o.confirmation, fmt.Sprintf("This ends the management of %s, and deletes ManagedOperator %s "+
		"with its rollouts. What runs stays as it is.\n", operator.Spec.Package, operator.Name)); err != nil {
		return err
	}
	return a.deleteWithRestore(ctx, h, operator, o.timeout)
}

// continueUndo waits for a ManagedOperator that is already being deleted. It cannot list the restored Subscriptions,
// because the clusters where the removal has ended have no report.
func (a *app) continueUndo(ctx context.Context, operator *v1alpha1.ManagedOperator, h *hub.Client,
	o adoptOptions) error {
	if policy := operator.Spec.RemovalPolicy; policy != v1alpha1.RemovalRestore {
		return exit.Hintf("to put back what is left, set its spec.removalPolicy to Restore",
			"operator %s is being deleted with the removal policy %s", operator.Name,
			cmp.Or(policy, v1alpha1.RemovalOrphan))
	}
	a.Say("ManagedOperator %s is being deleted, and what was there before is being put back.\n", operator.Name)
	if o.dryRun {
		return nil
	}
	return a.waitForUndo(ctx, h, operator, o.timeout)
}

// deleteWithRestore sets the removal policy Restore, deletes the
// ManagedOperator, and waits until the hub has removed it.
func (a *app) deleteWithRestore(ctx context.Context, h *hub.Client, o *v1alpha1.ManagedOperator,
	timeout time.Duration) error {
	before := o.DeepCopy()
	o.Spec.RemovalPolicy = v1alpha1.RemovalRestore
	if err := h.Patch(ctx, o, client.MergeFrom(before), hub.FieldOwner); err != nil {
		return fmt.Errorf("set the removal policy of operator %s: %w", o.Name, err)
	}
	// The UID protects a new ManagedOperator of the same name that a user has created in the meantime.
	if err := h.Delete(ctx, o, client.Preconditions{UID: &o.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ManagedOperator %s: %w", o.Name, err)
	}
	return a.waitForUndo(ctx, h, o, timeout)
}

// waitForUndo waits until a ManagedOperator is deleted, and prints why the deletion is not complete.
func (a *app) waitForUndo(ctx context.Context, h *hub.Client, o *v1alpha1.ManagedOperator,
	timeout time.Duration) error {
	printed := ""
	err := hub.Poll(ctx, timeout, func() (bool, error) {
		current := &v1alpha1.ManagedOperator{}
		err := h.Get(ctx, client.ObjectKeyFromObject(o), current)
		// Another UID is a new ManagedOperator of the same name.
		isReplaced := err == nil && current.UID != o.UID
		if apierrors.IsNotFound(err) || isReplaced {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("get operator %s: %w", o.Name, err)
		}
		if message := readDeletionMessage(current); message != "" && message != printed {
			a.Say("… %s\n", message)
			printed = message
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return exit.Hintf("the hub goes on; see it with `operator get "+o.Name+"`", "not ended within %s: %s", timeout,
			printed)
	}
	if err != nil {
		return err
	}
	a.Step("operator %s is as it was before it was taken over, and is not managed any more", o.Name)
	return nil
}

// readDeletionMessage returns why the deletion of a ManagedOperator is not
// complete; empty if the hub has not reported a reason.
func readDeletionMessage(o *v1alpha1.ManagedOperator) string {
	for _, c := range o.Status.Conditions {
		// A condition with an older generation describes the state before the deletion.
		if c.Type == v1alpha1.ConditionReady && o.DeletionTimestamp != nil && c.Status != metav1.ConditionTrue &&
			c.ObservedGeneration >= o.Generation {
			return c.Message
		}
	}
	return ""
}
