/** A pod that attacks its machine, other pods and the fleet. */
import { test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { eventually } from '../support/wait.ts'
import { attackedFleet, honest } from './support/attacked-fleet.ts'

test('an attacker in a pod', async (t) => {
  const fleet = await attackedFleet(t)
  const { controller } = fleet
  const apply = async (name: string, script: string, spec: object = {}, container: object = {}) => {
    const command = ['sh', '-c', `${script}\nsleep 100000`]
    const manifest = podManifest({ name, image, command, spec: { nodeName: honest, ...spec }, container })
    await controller.kubectlWith(manifest, 'apply', '-f', '-')
  }
  const read = async (name: string) => JSON.parse(await controller.kubectl('get', 'pod', name, '-o', 'json'))

  await t.test('on the machine’s network reads no other pod', async (t) => {
    await apply('victim', 'true', {}, { env: [{ name: 'VALUE', value: 'a-value-of-the-victim' }] })
    const { port } = new URL(fleet.endpoint())
    const paths = ['pods', 'spec', 'metrics', 'metrics/cadvisor', 'stats/summary', 'runningpods', 'configz']
    const script = paths.map((path) => `busybox wget -qO- http://127.0.0.1:${port}/${path} 2>&1`).join('; ')
    await apply('spy', `(${script}) >/tmp/all; grep -c a-value-of-the-victim /tmp/all >/dev/termination-log; exit 0`, {
      hostNetwork: true,
      restartPolicy: 'Never',
    })
    await controller.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/spy', '--timeout=80s')
    const { status } = await read('spy')
    t.equal(status.containerStatuses[0].state.terminated.message?.trim(), '0')
  })

  await t.test('leaves no folder that cannot be removed', async (t) => {
    const volume = { volumes: [{ name: 'v', emptyDir: {} }] }
    const mount = { volumeMounts: [{ name: 'v', mountPath: '/v' }] }
    // From the inside out: a shell cannot go further down than the 4096 characters of a path.
    const deep = `${nested('/v', 600)}; echo 600 >/v/depth`
    await fleet.unnoticed(t, async () => {
      await apply(
        'deep',
        `${deep}; cat /v/depth >/dev/termination-log; exit 0`,
        { ...volume, restartPolicy: 'Never' },
        mount,
      )
      await controller.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/deep', '--timeout=80s')
      const { metadata, status } = await read('deep')
      t.equal(status.containerStatuses[0].state.terminated.message?.trim(), '600', 'the tree is there')
      const before = fleet.agentLogLength()
      await controller.kubectl('delete', 'pod', 'deep', '--timeout=80s')
      await eventually('its folder is gone', async () => !(await fleet.volumesOf(metadata.uid)))
      t.ok(fleet.agentLogLength() - before < 20_000, 'and the log is short')
    })
  })

  await t.test('does not evade the limit of its volume by depth', async (t) => {
    const deep = `dd if=/dev/zero of=/v/large bs=1M count=32 2>/dev/null; ${nested('/v', 60, '/v/large')}`
    await fleet.unnoticed(t, async () => {
      await apply(
        'greedy',
        deep,
        { volumes: [{ name: 'v', emptyDir: { sizeLimit: '4Mi' } }] },
        { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      )
      await controller.kubectl('wait', '--for=jsonpath={.status.reason}=Evicted', 'pod/greedy', '--timeout=120s')
    })
    t.pass('it is evicted')
  })

  await t.test('gets no more than 4096 bytes of last words into the fleet', async (t) => {
    await fleet.unnoticed(t, async () => {
      await apply('talker', 'busybox yes x | head -c 5000000 >/dev/termination-log; exit 0', { restartPolicy: 'Never' })
      await controller.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/talker', '--timeout=80s')
    })
    const { status } = await read('talker')
    t.ok((status.containerStatuses[0].state.terminated.message ?? '').length <= 4096)
  })

  await t.test('reaches nothing of the API without credentials', async (t) => {
    const { host, port } = fleet.api
    const url = `https://${host}:${port}/api/v1/namespaces/kube-system/secrets`
    const get = `busybox wget --no-check-certificate -qO- ${url} 2>&1 | head -c 2000 >/dev/termination-log`
    await apply('caller', `${get}; exit 0`, { hostNetwork: true, restartPolicy: 'Never' })
    await controller.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/caller', '--timeout=80s')
    const { status } = await read('caller')
    t.notMatch(status.containerStatuses[0].state.terminated.message ?? '', /SecretList|token/)
  })

  await t.test('is not let in with paths outside of its own', async (t) => {
    const container = { name: 'main', image, terminationMessagePath: '../../../etc/passwd' }
    for (const spec of [
      { containers: [container] },
      {
        containers: [{ name: 'main', image, volumeMounts: [{ name: 'v', mountPath: '/v', subPath: '../../etc' }] }],
        volumes: [{ name: 'v', emptyDir: {} }],
      },
      { containers: [{ name: 'main', image }], volumes: [{ name: 'v', hostPath: { path: '/etc/../../root' } }] },
    ]) {
      const { status } = await fleet.admin.sendJson('POST', '/api/v1/namespaces/default/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'outside' },
        spec: { nodeName: honest, ...spec },
      })
      t.equal(status, 422)
    }
  })
})

/** A shell script that makes folders in folders, with names of 200 characters; `file` goes into the innermost one. */
function nested(folder: string, depth: number, file?: string): string {
  const moved = file === undefined ? ':' : `mv ${file} ${folder}/tree/`
  const step = `n=$(printf %0200d $i); mkdir ${folder}/next && mv ${folder}/tree ${folder}/next/$n && mv ${folder}/next ${folder}/tree`
  return `mkdir ${folder}/tree; ${moved}; i=0; while [ $i -lt ${depth} ]; do ${step} || exit 1; i=$((i+1)); done`
}
