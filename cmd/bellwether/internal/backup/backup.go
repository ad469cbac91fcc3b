// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup provides the commands for backups of custom resources.
package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command backup with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("backup", "Save and restore the custom resources of operators", []string{"backups"},
		a.newListCommand(), a.newShowCommand(), a.newCreateCommand(), a.newVerifyCommand(), a.newRestoreCommand())
}

// backupFilter selects the backups that are listed. Empty fields match all backups.
type backupFilter struct{ cluster, operator, namespace string }

// matches reports whether a backup is of the operator and the namespace. The cluster is
// not compared: the request to the hub selects it.
func (f backupFilter) matches(b v1alpha1.OperatorBackup) bool {
	namespace, name, isQualified := strings.Cut(f.operator, "/")
	if !isQualified { // the operator is only a name, so the namespace of -n counts
		namespace, name = f.namespace, f.operator
	}
	matchesName := name == "" || b.Spec.Operator.Name == name
	matchesNamespace := namespace == "" || b.Spec.Operator.Namespace == namespace
	return matchesName && matchesNamespace
}

func (a *app) newListCommand() *cobra.Command {
	var out command.Output
	var f backupFilter
	var scope command.Scope
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List backups, the newest first", Args: command.NoArgs,
		Long:    listLong,
		Example: "  bellwether backup list --operator echo -o wide",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.namespace, err = scope.ReadNamespace(a.Env); err != nil {
				return err
			}
			if err := out.Check(); err != nil {
				return err
			}
			return a.listBackups(c.Context(), &out, f)
		},
	}
	c.Flags().StringVar(&f.cluster, "cluster", "", "List only the backups of this cluster.")
	c.Flags().StringVar(&f.operator, "operator", "", "List only the backups of this operator: NAME or NAMESPACE/NAME.")
	_ = c.RegisterFlagCompletionFunc("cluster", a.CompleteFirst(command.ListClusterNames))
	scope.Add(c)
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

const listLong = `List the backups of operators, the newest first. All namespaces are listed. With -n, only the
backups of operators of that namespace are.`

// listBackups prints the backups that match the filter, the newest first.
func (a *app) listBackups(ctx context.Context, out *command.Output, f backupFilter) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	var options []client.ListOption
	if f.cluster != "" {
		options = append(options, client.InNamespace(v1alpha1.ClusterNamespace(f.cluster)))
	}
	list := &v1alpha1.OperatorBackupList{}
	if err := h.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(b v1alpha1.OperatorBackup) bool { return !f.matches(b) })
	slices.SortFunc(list.Items, func(x, y v1alpha1.OperatorBackup) int {
		return y.CreationTimestamp.Compare(x.CreationTimestamp.Time)
	})
	table := BuildBackupTable(list.Items, term.Listing{Now: a.Now(), Wide: out.Wide()})
	return a.List(out, list, table, "There are no backups. Take one with `"+a.Self+" backup create CLUSTER OPERATOR`.")
}

func (a *app) newShowCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "show CLUSTER NAME", Aliases: []string{"get"}, Short: "Show what is in a backup",
		Args:              command.ExactArgs("the cluster's name", "the backup's name"),
		ValidArgsFunction: a.Complete(command.ListClusterNames, command.ListBackupNames),
		Example:           "  bellwether backup show prod-1 team.echo.20260301-030000",
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			b, err := a.readBackup(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if !out.Table() {
				return out.Object(a.Streams.Out, b)
			}
			a.Say("%s", RenderBackup(b, a.Now(), a.StyleOf(&out)))
			return nil
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

// readBackup reads an OperatorBackup of a cluster, or returns an error with a hint if it does not exist.
func (a *app) readBackup(ctx context.Context, cluster, name string) (*v1alpha1.OperatorBackup, error) {
	h, err := a.Hub()
	if err != nil {
		return nil, err
	}
	b := &v1alpha1.OperatorBackup{}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: name}
	switch err := h.Get(ctx, key, b); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("get backup: %w", err)
	case err != nil: // it does not exist
		return nil, exit.Hintf("to list the backups, run `"+a.Self+" backup list --cluster "+cluster+"`",
			"there is no backup %q of cluster %q", name, cluster)
	}
	return b, nil
}

// createOptions are the flags of backup create.
type createOptions struct {
	cluster, operator string
	wait              bool
	timeout           time.Duration
}

const createLong = `Take a backup of the custom resources of an operator on a cluster.

The command creates an OperatorBackup with the settings in spec.backup of the
ManagedOperator. The agent of the cluster takes the backup, reads it back from the
store, and reports what is in it. Retention does not remove such a backup.`

func (a *app) newCreateCommand() *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use: "create CLUSTER OPERATOR", Short: "Take a backup now", Long: createLong,
		Args:              command.ExactArgs("the cluster's name", "the operator's name"),
		ValidArgsFunction: a.Complete(command.ListClusterNames, command.ListOperatorNames),
		Example:           "  bellwether backup create prod-1 echo",
		RunE: func(c *cobra.Command, args []string) error {
			o.cluster, o.operator = args[0], args[1]
			return a.createBackup(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.wait, "wait", true, "Wait until the backup is complete.")
	command.AddTimeout(c, &o.timeout, 10*time.Minute, "How long to wait.")
	return c
}

// createBackup creates an OperatorBackup and, with --wait, waits until the agent has taken and verified the backup.
func (a *app) createBackup(ctx context.Context, o createOptions) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	operator, err := h.Operator(ctx, o.operator)
	if err != nil {
		return err
	}
	install := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: operator.Namespace, Name: operator.Name}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(o.cluster), Name: reference.InstallName()}
	switch err := h.Get(ctx, key, install); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get install: %w", err)
	case err != nil: // it does not exist
		return exit.Hintf("to see where it is, run `"+a.Self+" operator get "+operator.Name+"`",
			"operator %q is not on cluster %q", operator.Name, o.cluster)
	}
	// The hub might not have copied the newest settings to the install yet.
	install.Spec.Backup = operator.Spec.Backup
	backup := backups.NewManualBackup(install, a.Now())
	if err := h.Create(ctx, backup, hub.FieldOwner); err != nil {
		return fmt.Errorf("create OperatorBackup: %w", err)
	}
	a.Step("asked the agent of %s for backup %s", o.cluster, backup.Name)
	if !o.wait {
		return nil
	}
	return a.waitForBackup(ctx, h, backup, o)
}

// waitForBackup waits until a backup is verified or has failed.
func (a *app) waitForBackup(ctx context.Context, h *hub.Client, b *v1alpha1.OperatorBackup, o createOptions) error {
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		if err := h.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return false, err
		}
		return backups.IsVerified(b) || term.IsStalled(b.Status.Conditions), nil
	})
	switch {
	case err != nil:
		return exit.Hintf("to see its state, run `"+a.Self+" backup show "+o.cluster+" "+b.Name+"`",
			"wait for the backup: %w", err)
	case !backups.IsVerified(b):
		return exit.Hintf("the agent tries it again; see `"+a.Self+" backup show "+o.cluster+" "+b.Name+"`",
			"the backup failed: %s", term.Headline(b.Status.Conditions))
	}
	a.Step("%s", term.Headline(b.Status.Conditions))
	return nil
}
