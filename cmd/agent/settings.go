// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// environmentPrefix is the prefix of variables that set flags. An agent that OLM installs has
// the same arguments on all clusters. Settings that differ between clusters are variables, from
// its Subscription or a ConfigMap.
const environmentPrefix = "BELLWETHER_AGENT_"

// setFromEnvironment sets flags from variables: --view-host from BELLWETHER_AGENT_VIEW_HOST. It
// does not change a flag that the command line sets.
func setFromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := environmentPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := lookup(name)
		if !ok || f.Changed {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("use variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// errNoCluster means that neither the flag nor the kubeconfig names the cluster.
var errNoCluster = errors.New("it does not name the cluster: set --cluster")

// completeCluster sets --cluster from the kubeconfig for the hub if the flag is not
// set. The namespace of the kubeconfig's context is the cluster's namespace,
// because fleet join writes it.
func (f *flags) completeCluster() error {
	if f.cluster != "" || f.hostedNamespace != "" {
		return nil
	}
	config, err := clientcmd.LoadFromFile(f.hubKubeconfig)
	if err != nil {
		return fmt.Errorf("read --hub-kubeconfig: %w", err)
	}
	namespace := ""
	if c := config.Contexts[config.CurrentContext]; c != nil {
		namespace = c.Namespace
	}
	name, ok := strings.CutPrefix(namespace, v1alpha1.ClusterNamespace(""))
	if !ok || name == "" {
		return fmt.Errorf("the namespace of the context in --hub-kubeconfig is %q: %w", namespace, errNoCluster)
	}
	f.cluster = name
	return nil
}
