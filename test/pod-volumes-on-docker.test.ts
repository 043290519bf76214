import { execFile } from 'node:child_process'
import { access, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { mountPoints, mountsAt } from '../agent/adapters/disk/mounts.ts'
import type { Container, Pod, PodStatus, Volume } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, nodeOnDocker, outputOf, statusOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

const run = promisify(execFile)
const metadata = (name: string) => ({ name, namespace: 'default' })
const configMap = (data: { readonly [key: string]: string }) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('settings'), data }) as const
const secret = { apiVersion: 'v1', kind: 'Secret', metadata: metadata('key'), data: { token: 'c2VjcmV0' } } as const

function pod(name: string, script: string, volumes: readonly Volume[], more: Partial<Container>, spec = {}): Pod {
  const containers = [container('main', `trap "exit 0" TERM; ${script}; while :; do sleep 0.1; done`, more)]
  return aPod({ name, uid: `uid-${name}`, containers, spec: { volumes, terminationGracePeriodSeconds: 2, ...spec } })
}

test('what pods are given on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const shows = async (uid: string, name: string, text: string) => {
    let last = ''
    const shown = async () => {
      last = await outputOf(dockerd, uid, name).catch(() => '') // It is still being made.
      return last === text
    }
    await eventually(shown, () => `${uid} shows ${JSON.stringify(last)}`)
  }

  t.test('a missing ConfigMap keeps its pod waiting, and no other; the pod starts when it comes', async (t) => {
    const volumes = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: volumes.store })
    const valueFrom = { configMapKeyRef: { name: 'settings', key: 'colour' } }
    const waits = pod('waits', 'echo $COLOUR', [], { env: [{ name: 'COLOUR', valueFrom }] })
    const files = pod('files', 'echo $(cat /conf/colour)', [{ name: 'conf', configMap: { name: 'settings' } }], {
      volumeMounts: [{ name: 'conf', mountPath: '/conf' }],
    })
    node.publishDesired({ pods: [waits, files, pod('runs', 'true', [], {})] })
    await node.until('runs', ({ phase }) => phase === 'Running')
    const status = await node.until('waits', (one) => waiting(one)?.reason === 'CreateContainerConfigError')
    t.match(waiting(status), { message: 'configmap "settings" not found' })
    const message = 'MountVolume.SetUp failed for volume "conf" : configmap "settings" not found'
    t.match(waiting(await node.until('files', (one) => waiting(one)?.message === message)), {
      reason: 'ContainerCreating',
    })
    t.ok(node.eventTexts().includes(`FailedMount: ${message}`))
    node.publishDesired({ pods: [waits, files], configMaps: [configMap({ colour: 'red' })] })
    await node.until('waits', ({ phase }) => phase === 'Running')
    await node.until('files', ({ phase }) => phase === 'Running')
    await shows('uid-waits', 'main', 'red\n')
    await shows('uid-files', 'main', 'red\n')
  })

  t.test('changes of a ConfigMap reach the files of a running pod; a secret is in memory only', async (t) => {
    const volumes = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: volumes.store })
    const script =
      'cat /conf/a; stat -Lc %a /keys/token; echo $(cat /keys/token); until grep -q new /conf/a; do sleep 0.1; done; cat /conf/a'
    const given: readonly Volume[] = [
      { name: 'conf', configMap: { name: 'settings' } },
      { name: 'keys', projected: { sources: [{ secret: { name: 'key' } }], defaultMode: 0o400 } },
    ]
    const reads = pod('reads', script, given, {
      volumeMounts: [
        { name: 'conf', mountPath: '/conf' },
        { name: 'keys', mountPath: '/keys' },
      ],
    })
    node.publishDesired({ pods: [reads], configMaps: [configMap({ a: 'old\n' })], secrets: [secret] })
    await shows('uid-reads', 'main', 'old\n400\nsecret\n')
    node.publishDesired({ pods: [reads], configMaps: [configMap({ a: 'new\n' })], secrets: [secret] })
    await eventually(async () => (await outputOf(dockerd, 'uid-reads', 'main')).endsWith('secret\nnew\n'))
    t.equal(node.status('reads')?.containerStatuses?.[0]?.restartCount, 0)
    await t.rejects(run('grep', ['-r', 'secret', volumes.dataDirectory]), 'nothing of it is on the disk')
    await t.rejects(access(join(volumes.dataDirectory, 'pods/uid-reads')))
  })

  t.test('containers of a pod share its scratch space, over restarts, until the pod is gone', async (t) => {
    const volumes = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: volumes.store })
    const volumeMounts = [
      { name: 'disk', mountPath: '/disk' },
      { name: 'memory', mountPath: '/memory' },
      { name: 'disk', mountPath: '/part', subPath: 'deep/part' },
    ]
    const count =
      'echo x >> /disk/count; echo x >> /memory/count; cat /disk/count /memory/count | wc -l; [ $(wc -l < /disk/count) -ge 2 ] || exit 1; echo y > /part/file'
    const pairs = aPod({
      name: 'pair',
      uid: 'uid-pair',
      containers: [
        container('writer', `${count}; exec sleep 1000`, { volumeMounts }),
        container(
          'reader',
          'until grep y /disk/deep/part/file; do sleep 0.1; done; df -m /memory | tail -1 | tr -s " " | cut -d" " -f2; exec sleep 1000',
          { volumeMounts },
        ),
      ],
      spec: {
        terminationGracePeriodSeconds: 0,
        volumes: [
          { name: 'disk', emptyDir: {} },
          { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
        ],
      },
    })
    node.want(pairs)
    await shows('uid-pair', 'reader', 'y\n8\n')
    await node.until('pair', (status) => statusOf(status, 'writer')?.restartCount === 1)
    node.want()
    await eventually(() => node.gone.includes('uid-pair'))
    t.same(await readdir(join(volumes.dataDirectory, 'pods')), [])
    t.same(await readdir(join(volumes.memoryDirectory, 'pods')), [])
    t.equal(mountsAt(await mountPoints(), volumes.memoryDirectory).length, 2, 'for volumes, and for last words')
  })

  t.test('a path of the host is checked first, and no link leads out of it', async (t) => {
    const volumes = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: volumes.store })
    const folder = join(volumes.folder, 'host')
    await mkdir(folder)
    await writeFile(join(folder, 'file'), 'of the host\n')
    await symlink('/etc', join(folder, 'out'))
    const host = (type: string): readonly Volume[] => [{ name: 'h', hostPath: { path: folder, type } }]
    const mount = (more = {}) => ({ volumeMounts: [{ name: 'h', mountPath: '/host', ...more }] })
    node.want(
      pod(
        'good',
        'cat /host/file; touch /host/x 2>/dev/null || echo read only',
        host('Directory'),
        mount({ readOnly: true }),
      ),
      pod('wrong', 'true', host('File'), mount()),
      pod('escapes', 'true', host(''), mount({ subPath: 'out' })),
    )
    await shows('uid-good', 'main', 'of the host\nread only\n')
    const wrong = await node.until('wrong', (one) => waiting(one)?.message !== undefined)
    t.match(waiting(wrong)?.message, /hostPath type check failed: .* is not a file/)
    const escapes = await node.until('escapes', (one) => waiting(one)?.reason === 'CreateContainerConfigError')
    t.match(waiting(escapes)?.message, /failed to prepare subPath .* leads out of the volume/)
    t.ok(await stat(join(folder, 'file')))
  })

  t.test('a device, a socket and all of the host are what they are called', async (t) => {
    const volumes = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: volumes.store })
    const file = join(volumes.folder, 'disk')
    await writeFile(file, ' '.repeat(4096))
    const device = (await run('losetup', ['--find', '--show', file])).stdout.trim()
    t.teardown(() => run('losetup', ['--detach', device]))
    const kinds = [
      { type: 'BlockDevice', path: device, called: 'block device', look: 'test -b' },
      { type: 'CharDevice', path: '/dev/null', called: 'character device', look: 'test -c' },
      { type: 'Socket', path: dockerd.socket, called: 'socket file', look: 'test -S' },
      { type: 'File', path: file, called: 'file', look: 'test -f' },
      // Dockerd's own folder is in it.
      { type: 'Directory', path: '/', called: 'directory', look: 'test -d' },
    ]
    const looks = kinds.map(({ type, look }) => `${look} /${type} && echo ${type}`)
    const volumesOf = kinds.map(({ type, path }) => ({ name: type.toLowerCase(), hostPath: { path, type } }))
    const volumeMounts = kinds.map(({ type }) => ({ name: type.toLowerCase(), mountPath: `/${type}` }))
    const wrong = kinds.map(({ type, called }, i) => {
      const path = kinds[(i + 1) % kinds.length]?.path ?? ''
      const mounts = { volumeMounts: [{ name: 'other', mountPath: '/x' }] }
      const message = `${path} is not a ${called}`
      return { message, pod: pod(`no-${i}`, 'true', [{ name: 'other', hostPath: { path, type } }], mounts) }
    })
    node.want(pod('kinds', looks.join('; '), volumesOf, { volumeMounts }), ...wrong.map((one) => one.pod))
    await shows('uid-kinds', 'main', kinds.map(({ type }) => `${type}\n`).join(''))
    for (const { pod, message } of wrong) {
      const status = await node.until(pod.metadata.name ?? '', (one) => waiting(one)?.message !== undefined)
      t.match(waiting(status)?.message, `hostPath type check failed: ${message}`)
    }
  })
})

function waiting({ containerStatuses }: PodStatus) {
  return containerStatuses?.[0]?.state?.waiting
}
