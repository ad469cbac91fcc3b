// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/echo"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/server"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	greetNamespace = "default"
	greetName      = "hello"
)

// answers is what a cluster's echo server said before and after the upgrade.
type answers struct {
	cluster       string
	before, after server.Answer
}

func (d *demo) greet(ctx context.Context) error {
	for _, member := range d.platform.Fleet.Clusters {
		c, err := d.platform.Client(member.Name(), platform.Scheme())
		if err != nil {
			return err
		}
		if d.existing == nil || member.Name() != existing {
			if err := d.createGreeter(ctx, c, member.Name()); err != nil {
				return err
			}
		}
		answer, err := d.ask(ctx, c, before)
		if err != nil {
			return fmt.Errorf("ask the echo server of %s: %w", member.Name(), err)
		}
		d.say("%s answers %q with version %s", member.Name(), answer.Message, answer.Version)
		d.asked = append(d.asked, answers{cluster: member.Name(), before: answer})
	}
	return nil
}

// createGreeter creates an EchoServer.
func (d *demo) createGreeter(ctx context.Context, c client.Client, cluster string) error {
	if err := c.Create(ctx, &echov1alpha1.EchoServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: greetNamespace, Name: greetName},
		Spec:       echov1alpha1.EchoServerSpec{Message: "hello from " + cluster, Replicas: ptr.To(int32(1))},
	}); err != nil {
		return fmt.Errorf("create EchoServer on %s: %w", cluster, err)
	}
	return nil
}

func (d *demo) greetAgain(ctx context.Context) error {
	for i := range d.asked {
		c, err := d.platform.Client(d.asked[i].cluster, platform.Scheme())
		if err != nil {
			return err
		}
		if d.asked[i].after, err = d.ask(ctx, c, after); err != nil {
			return fmt.Errorf("ask the echo server of %s: %w", d.asked[i].cluster, err)
		}
		d.say("%s answers %q with version %s", d.asked[i].cluster, d.asked[i].after.Message, d.asked[i].after.Version)
	}
	return nil
}

// ask asks a cluster's echo servers over HTTP until one answers with the
// version.
func (d *demo) ask(ctx context.Context, c client.Client, version string) (server.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var answer server.Answer
	var last error
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		answer, last = echo.Ask(ctx, c, greetNamespace)
		return last == nil && answer.Version == version, nil
	})
	if err != nil {
		return answer, fmt.Errorf("version %s does not answer (last: version %q, %w)", version, answer.Version, last)
	}
	return answer, nil
}
