// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package echo

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
	"github.com/bellwether-dev/bellwether/testbed/echo/server"
)

// Ask asks the echo servers of a namespace over HTTP, one pod after the other, until one answers.
func Ask(ctx context.Context, c client.Client, namespace string) (server.Answer, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return server.Answer{}, fmt.Errorf("list pods: %w", err)
	}
	err := fmt.Errorf("there is no pod in namespace %s", namespace)
	for _, pod := range pods.Items {
		if pod.Status.PodIP == "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		var answer server.Answer
		if answer, err = get(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(plan.ServerPort))); err == nil {
			return answer, nil
		}
	}
	return server.Answer{}, err
}

func get(ctx context.Context, address string) (server.Answer, error) {
	var answer server.Answer
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s answered %s", address, response.Status)
	}
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}
