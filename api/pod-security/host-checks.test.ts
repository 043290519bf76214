import { test } from 'tap'
import type { SecuredPod } from './security-check.ts'
import { aContainer, aSecuredPod, eachKind, foundIn, oneOfEachKind } from './testing/checked-pods.ts'

test('baseline forbids what is the host’s', async (t) => {
  const ports = (...hostPorts: readonly number[]) => ({
    ports: hostPorts.map((hostPort, index) => ({ containerPort: index + 1, hostPort })),
  })
  const cases: readonly (readonly [SecuredPod, string])[] = [
    [
      aSecuredPod({ hostNetwork: true, hostPID: true, hostIPC: true }),
      'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
    ],
    [aSecuredPod({ hostIPC: true }), 'host namespaces (hostIPC=true)'],
    [aSecuredPod({ hostNetwork: false, hostPID: false, hostIPC: false }), ''],
    [
      aSecuredPod({
        volumes: [
          { name: 'a', hostPath: { path: '/a' } },
          { name: 'b', emptyDir: {} },
          { name: 'c', hostPath: { path: '/c' } },
        ],
      }),
      'hostPath volumes (volumes "a", "c")',
    ],
    [aSecuredPod({ volumes: [{ name: 'a', hostPath: { path: '/a' } }] }), 'hostPath volumes (volume "a")'],
    [aSecuredPod({ volumes: [{ name: 'a', emptyDir: {} }] }), ''],
    [
      aSecuredPod({
        containers: [
          aContainer('a', undefined, ports(9, 0)),
          aContainer('b', undefined, ports(10, 9)),
          aContainer('c', undefined, { ports: [{ containerPort: 3 }] }),
        ],
      }),
      'hostPort (containers "a", "b" use hostPorts 10, 9)',
    ],
    [aSecuredPod({ containers: [aContainer('a', undefined, ports(80))] }), 'hostPort (container "a" uses hostPort 80)'],
    [
      aSecuredPod(oneOfEachKind({ privileged: true })),
      `privileged (${eachKind} must not set securityContext.privileged=true)`,
    ],
    [aSecuredPod(oneOfEachKind({ privileged: false })), ''],
    [
      aSecuredPod({
        ...oneOfEachKind({ windowsOptions: { hostProcess: true } }),
        securityContext: { windowsOptions: { hostProcess: true } },
      }),
      `hostProcess (pod and ${eachKind} must not set securityContext.windowsOptions.hostProcess=true)`,
    ],
    [
      aSecuredPod({ securityContext: { windowsOptions: { hostProcess: true } } }),
      'hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)',
    ],
    [aSecuredPod({ securityContext: { windowsOptions: { hostProcess: false } } }), ''],
  ]
  for (const [pod, text] of cases) t.equal(foundIn(pod, 'baseline', 'v1.0'), text)
})
