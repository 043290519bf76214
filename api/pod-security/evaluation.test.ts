import { test } from 'tap'
import type { Container, PodSpec, SecurityContext } from '../pod.ts'
import { aPod } from '../testing/builders.ts'
import { reasonsText, securityChecks, securityViolations } from './evaluation.ts'
import { latestVersion, parseVersion, type SecurityLevel } from './levels.ts'
import type { SecuredPod } from './security-check.ts'
import { aContainer, aSecuredPod, foundIn, hardened, oneOfEachKind } from './testing/checked-pods.ts'

test('the nine pods that give a tenant the node are refused, each with the words of Kubernetes', async (t) => {
  const ofContainer = (securityContext: SecurityContext, more?: Partial<Container>) =>
    aSecuredPod({ containers: [aContainer('c', { ...hardened, ...securityContext }, more)] })
  const ofPod = (spec: Partial<PodSpec>) => aSecuredPod({ containers: [aContainer('c', hardened)], ...spec })
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
    t.equal(foundIn(parts, level), text)
    t.equal(foundIn(parts, 'privileged'), '', 'privileged allows everything')
  }
  t.equal(foundIn(ofPod({}), 'restricted'), '', 'without these it is allowed')
})

test('a plain pod violates four checks of restricted, and none of baseline', async (t) => {
  const plain = aSecuredPod({ containers: [aContainer('a'), aContainer('b')] })
  t.equal(foundIn(plain, 'baseline'), '')
  t.equal(
    foundIn(plain, 'restricted'),
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

test('what baseline allows is not a violation', async (t) => {
  t.equal(foundIn(aPod(), 'baseline'), '')
  t.equal(foundIn(aSecuredPod(oneOfEachKind({ capabilities: { add: ['CHOWN'] } })), 'baseline'), '')
})

test('a version has the checks of that version of Kubernetes', async (t) => {
  const plain = aSecuredPod({ containers: [aContainer('c')] })
  const reasons = (pod: SecuredPod, version: string) =>
    reasonsText(securityViolations(pod, { level: 'restricted', version: parseVersion(version) ?? Number.NaN }))
  t.equal(reasons(plain, 'v1.7'), 'runAsNonRoot != true')
  t.equal(reasons(plain, 'v1.8'), 'allowPrivilegeEscalation != false, runAsNonRoot != true')
  t.equal(reasons(plain, 'v1.19'), 'allowPrivilegeEscalation != false, runAsNonRoot != true, seccompProfile')
  const latest = 'allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile'
  t.equal(reasons(plain, 'v1.22'), latest)
  t.equal(reasons(plain, 'v1.999'), latest, 'a later one is the newest')

  const adding = aSecuredPod({ containers: [aContainer('c', { ...hardened, capabilities: { add: ['NET_RAW'] } })] })
  t.equal(reasons(adding, 'v1.21'), 'non-default capabilities', 'that of baseline is not replaced yet')
  t.equal(reasons(adding, 'v1.22'), 'unrestricted capabilities')
})

test('the checks are in the order in which Kubernetes names violations', async (t) => {
  const names = (level: string) => securityChecks.filter((one) => one.level === level).map(({ name }) => name)
  t.same(
    securityChecks.map(({ name }) => name),
    [...names('baseline').sort(), ...names('restricted').sort()],
  )
  t.equal(securityChecks.length, 17)
})
