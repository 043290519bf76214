import { test } from 'tap'
import type { PodSpec, SecurityContext } from '../pod.ts'
import { aContainer, aSecuredPod, eachKind, foundIn, hardened, oneOfEachKind } from './testing/checked-pods.ts'

/** What restricted finds of a pod with one container, which has all it needs but this. */
function found(change: SecurityContext, spec: Partial<PodSpec> = {}, version = 'latest'): string {
  return foundIn(
    aSecuredPod({ containers: [aContainer('c', { ...hardened, ...change })], ...spec }),
    'restricted',
    version,
  )
}

test('baseline allows the capabilities of a container by default, but raw access to the network', async (t) => {
  const add = [
    ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
    ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
  ]
  t.equal(foundIn(aSecuredPod(oneOfEachKind({ capabilities: { add } })), 'baseline'), '')
  t.equal(
    foundIn(aSecuredPod(oneOfEachKind({ capabilities: { add: ['NET_RAW', 'CHOWN', 'CAP_CHOWN'] } })), 'baseline'),
    `non-default capabilities (${eachKind} must not include "CAP_CHOWN", "NET_RAW" in securityContext.capabilities.add)`,
  )
})

test('restricted has containers drop all capabilities, and add one at most', async (t) => {
  const drop = 'container "c" must set securityContext.capabilities.drop=["ALL"]'
  const add = 'container "c" must not include "CHOWN" in securityContext.capabilities.add'
  t.equal(found({ capabilities: { drop: ['ALL', 'CHOWN'], add: ['NET_BIND_SERVICE'] } }), '')
  t.equal(found({ capabilities: { drop: ['all'] } }), `unrestricted capabilities (${drop})`)
  t.equal(found({ capabilities: { drop: ['ALL'], add: ['CHOWN'] } }), `unrestricted capabilities (${add})`)
  t.equal(found({ capabilities: { add: ['CHOWN'] } }), `unrestricted capabilities (${drop}; ${add})`)
  const undropped = aSecuredPod({ containers: [aContainer('c', { ...hardened, capabilities: {} })] })
  t.equal(foundIn(undropped, 'restricted', 'v1.21'), '', 'since 1.22')
})

test('restricted forbids escalation of privileges', async (t) => {
  const text =
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)'
  t.equal(found({ allowPrivilegeEscalation: true }), text)
  t.equal(found({ allowPrivilegeEscalation: true }, {}, 'v1.8'), text)
  t.equal(found({ allowPrivilegeEscalation: true }, {}, 'v1.7'), '')
})

test('restricted forbids root', async (t) => {
  const { runAsNonRoot: _, ...context } = hardened
  const unset = { containers: [aContainer('a', context), aContainer('b', hardened), aContainer('c', context)] }
  const must = 'must set securityContext.runAsNonRoot=true'
  const mustNot = 'must not set securityContext.runAsNonRoot=false'
  const cases: readonly (readonly [string, string])[] = [
    [found({}, { ...unset }), `runAsNonRoot != true (pod or containers "a", "c" ${must})`],
    [found({}, { ...unset, securityContext: { runAsNonRoot: true } }), ''],
    [found({}, { ...unset, securityContext: { runAsNonRoot: false } }), `runAsNonRoot != true (pod ${mustNot})`],
    [found({ runAsNonRoot: false }), `runAsNonRoot != true (container "c" ${mustNot})`],
    [
      found({ runAsNonRoot: false }, { securityContext: { runAsNonRoot: false } }),
      `runAsNonRoot != true (pod and container "c" ${mustNot})`,
    ],
    [found({}, { securityContext: { runAsNonRoot: true }, hostUsers: false }), ''],
    [found({ runAsNonRoot: false }, { hostUsers: false }), `runAsNonRoot != true (container "c" ${mustNot})`],
    [
      found({ runAsUser: 0 }, { securityContext: { runAsUser: 0 } }),
      'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
    ],
    [found({ runAsUser: 0 }), 'runAsUser=0 (container "c" must not set runAsUser=0)'],
    [found({ runAsUser: 0 }, {}, 'v1.23'), 'runAsUser=0 (container "c" must not set runAsUser=0)'],
    [found({ runAsUser: 0 }, {}, 'v1.22'), ''],
    [found({ runAsUser: 1 }, { securityContext: { runAsUser: 2 } }), ''],
  ]
  for (const [text, wanted] of cases) t.equal(text, wanted)
})

test('what Windows does not have is not asked of its pods, since 1.25', async (t) => {
  const windows = aSecuredPod({
    os: { name: 'windows' },
    securityContext: { runAsNonRoot: true },
    containers: [aContainer('c')],
  })
  t.equal(foundIn(windows, 'restricted', 'v1.25'), '')
  t.match(
    foundIn(windows, 'restricted', 'v1.24'),
    /^allowPrivilegeEscalation .*unrestricted capabilities .*seccompProfile /,
  )
})
