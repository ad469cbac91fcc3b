// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	echoplan "github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
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
		if err := c.Create(ctx, &echov1alpha1.EchoServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: greetNamespace, Name: greetName},
			Spec:       echov1alpha1.EchoServerSpec{Message: "hello from " + member.Name(), Replicas: ptr.To(int32(1))},
		}); err != nil {
			return fmt.Errorf("create EchoServer on %s: %w", member.Name(), err)
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
		answer, last = askOnce(ctx, c)
		return last == nil && answer.Version == version, nil
	})
	if err != nil {
		return answer, fmt.Errorf("version %s does not answer (last: version %q, %w)", version, answer.Version, last)
	}
	return answer, nil
}

func askOnce(ctx context.Context, c client.Client) (server.Answer, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(greetNamespace)); err != nil {
		return server.Answer{}, fmt.Errorf("list pods: %w", err)
	}
	err := fmt.Errorf("there is no pod in namespace %s", greetNamespace)
	for _, pod := range pods.Items {
		if pod.Status.PodIP == "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		var answer server.Answer
		if answer, err = get(ctx, "http://"+net.JoinHostPort(pod.Status.PodIP,
			strconv.Itoa(echoplan.ServerPort))+"/"); err == nil {
			return answer, nil
		}
	}
	return server.Answer{}, err
}

func get(ctx context.Context, url string) (server.Answer, error) {
	var answer server.Answer
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s answered %s", url, response.Status)
	}
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}
