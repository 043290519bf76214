import { test } from 'tap'
import type { Container, PodSpec, SecurityContext } from '../pod.ts'
import { aPod } from '../testing/builders.ts'
import { reasonsText, securityChecks, securityViolations, violationsText } from './evaluation.ts'
import { latestVersion, parseVersion, type SecurityLevel } from './levels.ts'
import type { SecuredPod } from './security-check.ts'

const container = (name: string, securityContext?: SecurityContext, more: Partial<Container> = {}): Container => ({
  name,
  ...(securityContext && { securityContext }),
  ...more,
})

const pod = (spec: Partial<PodSpec>, annotations?: { readonly [key: string]: string }): SecuredPod => ({
  ...(annotations && { metadata: { annotations } }),
  spec: { containers: [], ...spec },
})

const hardened: SecurityContext = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

function found(parts: SecuredPod, level: SecurityLevel, version = 'latest'): string {
  return violationsText(securityViolations(parts, { level, version: parseVersion(version) ?? Number.NaN }))
}

test('the nine pods that give a tenant the node are refused, each with the words of Kubernetes', async (t) => {
  const ofContainer = (securityContext: SecurityContext, more?: Partial<Container>) =>
    pod({ containers: [container('c', { ...hardened, ...securityContext }, more)] })
  const ofPod = (spec: Partial<PodSpec>) => pod({ containers: [container('c', hardened)], ...spec })
  const cases: readonly (readonly [SecuredPod, SecurityLevel, string])[] = [
    [ofPod({ volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] }), 'baseline', 'hostPath volumes (volume "etc")'],
    [ofPod({ hostPID: true }), 'baseline', 'host namespaces (hostPID=true)'],
    [ofPod({ hostNetwork: true }), 'baseline', 'host namespaces (hostNetwork=true)'],
    [ofPod({ hostIPC: true }), 'baseline', 'host namespaces (hostIPC=true)'],
    [
      ofContainer({ privileged: true }),
      'baseline',
      'privileged (container "c" must not set securityContext.privileged=true)',
    ],
    [
      ofContainer({ capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] } }),
      'baseline',
      'non-default capabilities (container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
    ],
    [
      ofContainer({ seccompProfile: { type: 'Unconfined' } }),
      'baseline',
      'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    [
      ofContainer({}, { ports: [{ containerPort: 80, hostPort: 8080 }] }),
      'baseline',
      'hostPort (container "c" uses hostPort 8080)',
    ],
    [
      ofContainer({ runAsNonRoot: false }),
      'restricted',
      'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)',
    ],
  ]
  for (const [parts, level, text] of cases) {
    t.equal(found(parts, level), text)
    t.equal(found(parts, 'privileged'), '', 'privileged allows everything')
  }
  t.equal(found(ofPod({}), 'restricted'), '', 'without these it is allowed')
})

test('a plain pod violates four checks of restricted, and none of baseline', async (t) => {
  const plain = pod({ containers: [container('a'), container('b')] })
  t.equal(found(plain, 'baseline'), '')
  t.equal(
    found(plain, 'restricted'),
    [
      'allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)',
      'unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"])',
      'runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)',
      'seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ].join(', '),
  )
  t.equal(
    reasonsText(securityViolations(plain, { level: 'restricted', version: latestVersion })),
    'allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile',
  )
})

test('each check names what is forbidden, of the pod and of its containers of all kinds', async (t) => {
  const three = (bad: SecurityContext) => ({
    initContainers: [container('init', bad)],
    containers: [container('good'), container('main', bad)],
    ephemeralContainers: [container('debug', bad)],
  })
  const all = 'containers "init", "main", "debug"'
  const cases: readonly (readonly [SecuredPod, string])[] = [
    [
      pod({ hostNetwork: true, hostPID: true, hostIPC: true }),
      'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
    ],
    [
      pod({
        volumes: [
          { name: 'a', hostPath: { path: '/a' } },
          { name: 'b', emptyDir: {} },
          { name: 'c', hostPath: { path: '/c' } },
        ],
      }),
      'hostPath volumes (volumes "a", "c")',
    ],
    [
      pod({
        containers: [
          container('a', undefined, { ports: [{ containerPort: 1, hostPort: 9 }, { containerPort: 2 }] }),
          container('b', undefined, { ports: [{ containerPort: 3, hostPort: 10 }] }),
          container('c', undefined, { ports: [{ containerPort: 3, hostPort: 0 }] }),
        ],
      }),
      'hostPort (containers "a", "b" use hostPorts 10, 9)',
    ],
    [pod(three({ privileged: true })), `privileged (${all} must not set securityContext.privileged=true)`],
    [
      pod(three({ capabilities: { add: ['NET_RAW', 'CHOWN', 'CAP_CHOWN'] } })),
      `non-default capabilities (${all} must not include "CAP_CHOWN", "NET_RAW" in securityContext.capabilities.add)`,
    ],
    [
      pod({
        ...three({ windowsOptions: { hostProcess: true } }),
        securityContext: { windowsOptions: { hostProcess: true } },
      }),
      `hostProcess (pod and ${all} must not set securityContext.windowsOptions.hostProcess=true)`,
    ],
    [
      pod({
        ...three({ seLinuxOptions: { type: 'bar' } }),
        securityContext: { seLinuxOptions: { type: 'foo', user: 'u', role: 'r' } },
      }),
      `seLinuxOptions (pod and ${all} set forbidden securityContext.seLinuxOptions: types "bar", "foo"; user may not be set; role may not be set)`,
    ],
    [
      pod({ securityContext: { seLinuxOptions: { role: 'r', type: 'container_t', level: 's0' } } }),
      'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: role may not be set)',
    ],
    [pod(three({ procMount: 'Unmasked' })), `procMount (${all} must not set securityContext.procMount to "Unmasked")`],
    [
      pod({ ...three({ procMount: 'Unmasked' }), hostUsers: false }),
      `procMount (${all} must not set securityContext.procMount to "Unmasked")`,
    ],
    [
      pod({
        ...three({ seccompProfile: { type: 'Unconfined' } }),
        securityContext: { seccompProfile: { type: 'Unconfined' } },
      }),
      `seccompProfile (pod and ${all} must not set securityContext.seccompProfile.type to "Unconfined")`,
    ],
    [
      pod(
        {
          ...three({ appArmorProfile: { type: 'Unconfined' } }),
          securityContext: { appArmorProfile: { type: 'Unconfined' } },
        },
        { 'container.apparmor.security.beta.kubernetes.io/main': 'unconfined' },
      ),
      `forbidden AppArmor profiles (pod and ${all} and annotation must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/main="unconfined"")`,
    ],
    [
      pod(
        {},
        {
          'container.apparmor.security.beta.kubernetes.io/a': '',
          'container.apparmor.security.beta.kubernetes.io/b': 'runtime/default',
          'container.apparmor.security.beta.kubernetes.io/c': 'localhost/x',
          'container.apparmor.security.beta.kubernetes.io/d': 'unknown',
          other: 'unconfined',
        },
      ),
      'forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/d="unknown"")',
    ],
    [
      pod({
        securityContext: {
          sysctls: [
            { name: 'net.core.somaxconn', value: '1' },
            { name: 'net.ipv4.tcp_rmem', value: '1' },
            { name: 'kernel/shm_rmid_forced', value: '1' },
          ],
        },
      }),
      'forbidden sysctls (net.core.somaxconn, kernel/shm_rmid_forced)',
    ],
  ]
  for (const [parts, text] of cases) t.equal(found(parts, 'baseline'), text)
})

test('what baseline allows is no violation', async (t) => {
  const allowed: readonly SecuredPod[] = [
    pod({ hostNetwork: false, hostPID: false, hostIPC: false }),
    pod({ containers: [container('c', { privileged: false, procMount: 'Default' })] }),
    pod({ containers: [container('c', { capabilities: { add: ['CHOWN', 'NET_BIND_SERVICE'], drop: [] } })] }),
    pod({ securityContext: { seLinuxOptions: { type: 'container_engine_t', level: 's0' } } }),
    pod({ securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'p' } } }),
    pod({ securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
    pod({ securityContext: { windowsOptions: { hostProcess: false } } }),
    pod({ volumes: [{ name: 'a', emptyDir: {} }] }),
    aPod(),
  ]
  for (const parts of allowed) t.equal(found(parts, 'baseline'), '')
})

test('restricted looks at privileges, users, profiles and types of volumes', async (t) => {
  const main = (securityContext: SecurityContext) => ({
    containers: [container('main', { ...hardened, ...securityContext })],
  })
  const cases: readonly (readonly [SecuredPod, string])[] = [
    [
      pod(main({ allowPrivilegeEscalation: true })),
      'allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)',
    ],
    [
      pod(main({ capabilities: { drop: ['all'], add: ['CHOWN', 'NET_BIND_SERVICE'] } })),
      'unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]; container "main" must not include "CHOWN" in securityContext.capabilities.add)',
    ],
    [pod(main({ capabilities: { drop: ['ALL', 'CHOWN'], add: ['NET_BIND_SERVICE'] } })), ''],
    [
      pod({ ...main({ runAsNonRoot: false }), securityContext: { runAsNonRoot: false } }),
      'runAsNonRoot != true (pod and container "main" must not set securityContext.runAsNonRoot=false)',
    ],
    [pod({ ...main({}), securityContext: { runAsNonRoot: true }, hostUsers: false }), ''],
    [
      pod({ ...main({ runAsUser: 0 }), securityContext: { runAsUser: 0 } }),
      'runAsUser=0 (pod and container "main" must not set runAsUser=0)',
    ],
    [pod({ ...main({ runAsUser: 1 }), securityContext: { runAsUser: 2 } }), ''],
    [
      pod({
        ...main({ seccompProfile: { type: 'Unconfined' } }),
        securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      }),
      'seccompProfile (container "main" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    [
      pod({
        ...main({}),
        volumes: [
          { name: 'a', hostPath: { path: '/a' } },
          { name: 'b', nfs: {} },
          { name: 'c', image: {} },
          { name: 'd', projected: {} },
          { name: 'e', persistentVolumeClaim: { claimName: 'e' } },
        ],
      }),
      'restricted volume types (volumes "a", "b", "c" use restricted volume types "hostPath", "nfs", "unknown")',
    ],
    [
      pod({ ...main({}), volumes: [{ name: 'a', hostPath: { path: '/a' } }] }),
      'restricted volume types (volume "a" uses restricted volume type "hostPath")',
    ],
  ]
  for (const [parts, text] of cases) t.equal(found(parts, 'restricted'), text)
  const inherited = pod({
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'Localhost', localhostProfile: 'p' } },
    containers: [container('main', { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })],
  })
  t.equal(found(inherited, 'restricted'), '', 'a container has the user and the profile of its pod')
})

test('a version has the checks of that version of Kubernetes', async (t) => {
  const plain = pod({ containers: [container('c')] })
  const reasons = (parts: SecuredPod, level: SecurityLevel, version: string) =>
    reasonsText(securityViolations(parts, { level, version: parseVersion(version) ?? Number.NaN }))
  t.equal(reasons(plain, 'restricted', 'v1.7'), 'runAsNonRoot != true')
  t.equal(reasons(plain, 'restricted', 'v1.8'), 'allowPrivilegeEscalation != false, runAsNonRoot != true')
  t.equal(
    reasons(plain, 'restricted', 'v1.19'),
    'allowPrivilegeEscalation != false, runAsNonRoot != true, seccompProfile',
  )
  const latest = 'allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile'
  t.equal(reasons(plain, 'restricted', 'v1.22'), latest)
  t.equal(reasons(plain, 'restricted', 'v1.999'), latest, 'a later one is the newest')

  const asRoot = pod({ containers: [container('c', { ...hardened, runAsUser: 0 })] })
  t.same([reasons(asRoot, 'restricted', 'v1.22'), reasons(asRoot, 'restricted', 'v1.23')], ['', 'runAsUser=0'])

  const adding = pod({ containers: [container('c', { ...hardened, capabilities: { add: ['NET_RAW'] } })] })
  t.equal(reasons(adding, 'restricted', 'v1.21'), 'non-default capabilities', 'that of baseline is not replaced yet')

  const engine = pod({ securityContext: { seLinuxOptions: { type: 'container_engine_t' } } })
  t.same([reasons(engine, 'baseline', 'v1.30'), reasons(engine, 'baseline', 'v1.31')], ['seLinuxOptions', ''])

  const sysctl = (name: string) => pod({ securityContext: { sysctls: [{ name, value: '1' }] } })
  for (const [name, before, since] of [
    ['net.ipv4.ip_local_reserved_ports', 'v1.26', 'v1.27'],
    ['net.ipv4.tcp_fin_timeout', 'v1.28', 'v1.29'],
    ['net.ipv4.tcp_wmem', 'v1.31', 'v1.32'],
  ] as const) {
    t.equal(found(sysctl(name), 'baseline', before), `forbidden sysctls (${name})`)
    t.equal(found(sysctl(name), 'baseline', since), '')
  }

  const annotated = pod(
    { containers: [container('a'), container('__proto__')] },
    {
      'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
      'container.seccomp.security.alpha.kubernetes.io/a': 'docker/default',
      'container.seccomp.security.alpha.kubernetes.io/b': 'unconfined',
    },
  )
  t.equal(
    found(annotated, 'baseline', 'v1.18'),
    'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
  )
  t.equal(found(annotated, 'baseline', 'v1.19'), '')

  const windows = pod({
    os: { name: 'windows' },
    securityContext: { runAsNonRoot: true },
    containers: [container('c')],
  })
  t.equal(found(windows, 'restricted', 'v1.25'), '', 'what Windows does not have is not asked of it')
  t.not(found(windows, 'restricted', 'v1.24'), '')
})

test('the checks are in the order in which Kubernetes names violations', async (t) => {
  const names = (level: string) => securityChecks.filter((one) => one.level === level).map(({ name }) => name)
  t.same(
    securityChecks.map(({ name }) => name),
    [...names('baseline').sort(), ...names('restricted').sort()],
  )
  t.equal(securityChecks.length, 17)
})
