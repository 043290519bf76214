import { test } from 'tap'
import type { PodSpec, SecurityContext } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { asksForImageUser, containerSecurity } from './security.ts'

function secured(own: SecurityContext, ofPod: PodSpec['securityContext'] = {}, imageUser?: string) {
  const container = { name: 'main', securityContext: own }
  const pod = aPod({ name: 'web', uid: 'u', containers: [container], spec: { securityContext: ofPod } })
  const answer = containerSecurity(pod, container, imageUser)
  return { asks: asksForImageUser(pod, container), ...(answer.ok ? answer.security : { message: answer.message }) }
}

test('the container’s security context overrides the pod’s', async (t) => {
  t.match(secured({ runAsUser: 5 }, { runAsUser: 1, runAsGroup: 2, fsGroup: 3, supplementalGroups: [4, 3] }), {
    user: '5:2',
    groups: [3, 4],
    asks: false,
  })
  t.match(secured({}), { user: undefined, privileged: false, mayGainPrivileges: true, seccomp: { kind: 'standard' } })
  t.match(secured({ runAsGroup: 7 }, {}, 'app:app'), { user: 'app:7', asks: true })
  const profile = { type: 'Localhost', localhostProfile: 'mine.json' }
  t.match(
    secured({ seccompProfile: { type: 'Unconfined' }, allowPrivilegeEscalation: false }, { appArmorProfile: profile }),
    {
      seccomp: { kind: 'none' },
      appArmor: { kind: 'own', name: 'mine.json' },
      mayGainPrivileges: false,
    },
  )
})

test('the SELinux options of the container replace those of the pod', async (t) => {
  t.match(secured({}, { seLinuxOptions: { level: 's0:c1' } }), { seLinux: { level: 's0:c1' } })
  t.match(secured({ seLinuxOptions: { type: 'a_t', user: '' } }, { seLinuxOptions: { level: 's0:c1' } }), {
    seLinux: { type: 'a_t', level: undefined, user: undefined },
  })
})

test('a container with runAsNonRoot runs as another user, or does not start', async (t) => {
  const nonRoot = { runAsNonRoot: true }
  const where = '(pod: "web_default(u)", container: main)'
  t.match(secured({ runAsUser: 0 }, nonRoot), { message: `container's runAsUser breaks non-root policy ${where}` })
  t.match(secured({ runAsUser: 1 }, nonRoot), { user: '1' })
  t.match(secured({}, nonRoot, ''), {
    asks: true,
    message: `container has runAsNonRoot and image will run as root ${where}`,
  })
  t.match(secured({}, nonRoot, 'app'), { message: /has non-numeric user \(app\), cannot verify/ })
  t.match(secured({}, nonRoot, '1000:1000'), { user: undefined })
})
