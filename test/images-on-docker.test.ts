import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { machine, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { test } from 'tap'
import { hostPlatform } from '../agent/adapters/kernel/host-platform.ts'
import { pauseProgram } from '../agent/pods/images/sandbox-image.ts'
import { tarOf } from '../agent/pods/images/tar.ts'
import type { Container } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { eventually, isReady, listening, nodeOnDocker, outputOf, statusOf } from './support/pods.ts'
import { busyboxLayer, fillerLayer, hostArchitecture, startRegistry } from './support/registry.ts'

const run = promisify(execFile)
const otherArchitecture = hostArchitecture() === 'arm64' ? 'amd64' : 'arm64'
const megabyte = 1_000_000

function podOf(name: string, image: string, more: Partial<Container> = {}, spec = {}) {
  const main = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: listening, ...more }
  return aPod({ name, uid: `uid-${name}`, containers: [main], spec })
}

/** As `docker load` takes it. */
function imageArchive(name: string, architecture: string, layer: Buffer): Buffer {
  const diffID = `sha256:${createHash('sha256').update(layer).digest('hex')}`
  const config = { architecture, os: 'linux', config: {}, rootfs: { type: 'layers', diff_ids: [diffID] } }
  const file = (path: string, content: Buffer) => ({ path, content, mode: 0o644 })
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  return tarOf([
    file('config.json', json(config)),
    file('layer.tar', layer),
    file('manifest.json', json([{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }])),
  ])
}

test('images from a registry on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  const registry = await startRegistry(t)
  const busybox = await busyboxLayer()
  const platformProblem = hostPlatform({ root: '/', machine: machine() })
  const partialImages = () =>
    dockerd.docker.listImages({ filters: JSON.stringify({ reference: ['bramble.dev/partial'] }) })

  t.test('a pull whose link stalls is broken off and goes on with the layers it lacks', async (t) => {
    const pods = nodeOnDocker(t, dockerd, { pulls: { parallel: 2, stallMs: 6_000 } })
    const layers = [busybox, fillerLayer(megabyte), fillerLayer(2 * megabyte), fillerLayer(megabyte)]
    const [first = '', second = '', third = '', fourth = ''] = registry.add('stalls', '1', { layers })
    registry.stall(third, megabyte / 2)
    const image = `${registry.host}/stalls:1`
    pods.want(podOf('stalls', image))
    await pods.until('stalls', (status) =>
      /ErrImagePull|ImagePullBackOff/.test(statusOf(status, 'main')?.state?.waiting?.reason ?? ''),
    )
    t.match(
      pods.eventTexts().join('\n'),
      /Failed: Failed to pull image ".*": Cannot pull image .*: No progress for 6 s/,
    )
    t.match(await partialImages(), [{ RepoTags: [/^bramble\.dev\/partial:[0-9a-f]+-2$/] }], 'two layers are kept')
    registry.repair()
    registry.forget()
    await pods.until('stalls', isReady)
    const asked = registry.blobsAsked()
    t.ok(asked.includes(third) && asked.includes(fourth), 'what was missing')
    t.notOk(asked.includes(first) || asked.includes(second), 'and nothing of what was finished')
    t.match(
      pods.eventTexts().join('\n'),
      /Pulled: Successfully pulled image ".*" in .* including waiting\)\. Image size: \d{7} bytes\./,
    )
    t.same(await partialImages(), [], 'nothing is left over')
  })

  t.test('a link that breaks in the middle of a layer goes on where it broke', async (t) => {
    const pods = nodeOnDocker(t, dockerd)
    const [, second = ''] = registry.add('breaks', '1', { layers: [busybox, fillerLayer(2 * megabyte)] })
    registry.cut(second, megabyte)
    registry.forget()
    pods.want(podOf('breaks', `${registry.host}/breaks:1`))
    await pods.until('breaks', isReady)
    const ranges = registry.asked.filter(({ path }) => path.includes(second)).map(({ range }) => range)
    t.match(ranges, [undefined, /^bytes=\d{5,7}-/], 'the second time from where it broke')
    t.same(await partialImages(), [])
  })

  t.test('at most as many are pulled at once as allowed', async (t) => {
    const names = ['one', 'two', 'three', 'four']
    const pods = nodeOnDocker(t, dockerd, { pulls: { parallel: 2, stallMs: 60_000 } })
    const held = await startRegistry(t)
    for (const name of names) held.add(name, '1', { layers: [fillerLayer(10_000)] })
    const letGo = held.holdBlobs()
    pods.want(...names.map((name) => podOf(name, `${held.host}/${name}:1`)))
    await eventually(() => held.mostAtOnce === 2)
    letGo()
    const pulled = () => pods.eventTexts().filter((one) => one.startsWith('Pulled: Successfully pulled')).length
    await eventually(() => pulled() === 4)
    t.equal(held.mostAtOnce, 2)
  })

  t.test('a registry that demands authentication gets the pod’s secret, and nothing without', async (t) => {
    const guarded = await startRegistry(t)
    guarded.add('secret', '1', { layers: [busybox] })
    guarded.demand('pi', 'raspberry')
    const pods = nodeOnDocker(t, dockerd)
    const auth = { auths: { [guarded.host]: { username: 'pi', password: 'raspberry' } } }
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pull', namespace: 'default' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(JSON.stringify(auth)).toString('base64') },
    } as const
    const image = `${guarded.host}/secret:1`
    pods.publishDesired({ pods: [podOf('stranger', image)], secrets: [secret] })
    await eventually(() =>
      pods.eventTexts().some((one) => /Failed to pull image .*(unauthorized|no basic auth)/.test(one)),
    )
    const known = podOf('known', image, {}, { imagePullSecrets: [{ name: 'pull' }] })
    pods.publishDesired({ pods: [known], secrets: [secret] })
    await pods.until('known', isReady)
    t.notMatch(JSON.stringify([pods.events, pods.status('known')]), /raspberry/)
  })

  t.test('an image for another kind of machine is reported plainly; of several the right one is taken', async (t) => {
    // Whatever emulators this machine has.
    const bare = hostPlatform({ root: testFolder(t), machine: machine() })
    const pods = nodeOnDocker(t, dockerd, { platformProblem: bare })
    registry.add('other', '1', { architecture: otherArchitecture, layers: [busybox] })
    registry.addIndex('both', '1', [
      { architecture: otherArchitecture, layers: [fillerLayer(1_000)] },
      { layers: [busybox] },
    ])
    registry.addIndex('none', '1', [{ architecture: 's390x', layers: [fillerLayer(1_000)] }])
    const archive = imageArchive('test/loaded:1', otherArchitecture, busybox)
    for await (const _ of await dockerd.docker.loadImage(Readable.from([archive])));
    pods.want(
      podOf('other', `${registry.host}/other:1`),
      podOf('both', `${registry.host}/both:1`),
      podOf('none', `${registry.host}/none:1`),
      podOf('loaded', 'test/loaded:1', { imagePullPolicy: 'Never' }),
    )
    const waits = async (name: string) => {
      const isPullFailure = (reason = '') => /ImagePlatformMismatch|ErrImagePull|ImagePullBackOff/.test(reason)
      const status = await pods.until(name, (now) => isPullFailure(statusOf(now, 'main')?.state?.waiting?.reason))
      return statusOf(status, 'main')?.state?.waiting
    }
    const plainly = new RegExp(
      `" is for linux/${otherArchitecture}, this machine is linux/${hostArchitecture()}: use an`,
    )
    t.match(await waits('other'), { reason: 'ImagePlatformMismatch', message: plainly })
    t.match(await waits('loaded'), { reason: 'ImagePlatformMismatch', message: plainly })
    t.match(
      (await waits('none'))?.message,
      /no matching manifest for linux\/.*: the image is not built for this machine/,
    )
    await pods.until('both', isReady)
    t.ok(pods.eventTexts().some((one) => /^Failed: Failed to use image: image .*other:1" is for/.test(one)))
  })

  t.test('where the kernel has an emulator, it runs', async (t) => {
    const folder = '/proc/sys/fs/binfmt_misc'
    if (!(await readdir(folder).catch((): string[] => [])).includes('register')) {
      try {
        await run('mount', ['-t', 'binfmt_misc', 'binfmt_misc', folder])
      } catch {
        return t.pass('this kernel has no emulators', { skip: true })
      }
      t.teardown(async () => void (await run('umount', ['--lazy', folder])))
    }
    // An emulator that does but one thing: it lists the program it was to run.
    const tools = await mkdtemp(join(tmpdir(), 'bramble-emulator-'))
    const emulator = join(tools, 'ls')
    await copyFile('/bin/busybox', emulator)
    await chmod(emulator, 0o755)
    t.teardown(() => rm(tools, { recursive: true, force: true }))
    const program = pauseProgram(otherArchitecture)
    const magic = [...program.subarray(0, 20)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
    const name = `bramble-test-${process.pid}`
    await writeFile(join(folder, 'register'), `:${name}:M::${magic}::${emulator}:F`)
    t.teardown(() => writeFile(join(folder, name), '-1'))

    const layer = tarOf([{ path: 'app', content: program, mode: 0o755 }])
    registry.add('emulated', '1', { architecture: otherArchitecture, layers: [layer] })
    const pods = nodeOnDocker(t, dockerd, { platformProblem })
    const pod = podOf('emulated', `${registry.host}/emulated:1`, { command: ['/app'] }, { restartPolicy: 'Never' })
    pods.want(pod)
    await pods.until('emulated', ({ phase }) => phase === 'Succeeded')
    t.equal(await outputOf(dockerd, 'uid-emulated', 'main'), '/app\n')
  })
})
