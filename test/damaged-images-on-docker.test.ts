import { existsSync } from 'node:fs'
import { readdir, readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { namedImages } from '../agent/adapters/docker/store/image-files.ts'
import { chainIDs } from '../agent/adapters/docker/store/layer-check.ts'
import { checkImages } from '../agent/doctor/adapters/stored-images.ts'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { isReady, listening, nodeOnDocker, statusOf } from './support/pods.ts'
import { busyboxLayer, startRegistry } from './support/registry.ts'

test('an image that a power cut damaged is named, and its pod runs again after the remedy', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage('damaged:1')
  await dockerd.importImage(
    'whole:1',
    ['sh'],
    [
      { path: 'mark', mode: 0o644, content: Buffer.from('another layer') },
      // It was unpacked so: the checksum that Docker recorded is that of zeros.
      { path: 'disk.img', mode: 0o755, content: Buffer.alloc(10_000) },
    ],
  )
  const { Driver } = await dockerd.docker.info()
  if (Driver !== 'overlay2') {
    t.comment(`The engine keeps images with ${Driver}, whose files are not checked`)
    return
  }
  const pods = nodeOnDocker(t, dockerd)
  const podOf = (name: string, image: string, command: readonly string[]) =>
    aPod({ name, uid: `uid-${name}`, containers: [{ name: 'main', image, imagePullPolicy: 'Never', command }] })
  pods.want(podOf('web', 'damaged:1', listening), podOf('fails', 'whole:1', ['sh', '-c', 'exit 1']))
  const reasonIs = (reason: string) => (status: Parameters<typeof isReady>[0]) =>
    statusOf(status, 'main')?.state?.waiting?.reason === reason
  await pods.until('web', isReady)

  await dockerd.cutPower()
  for (const file of await programsOf(dockerd)) await truncate(file, 0)
  await dockerd.start()

  await t.test('the status and the Event name the image, the file and what to do', async (t) => {
    const status = await pods.until('web', reasonIs('ImageDamaged'))
    const message = statusOf(status, 'main')?.state?.waiting?.message ?? ''
    t.match(
      message,
      /^the image damaged:1 is damaged on this machine: the file "\/bin\/\S+" has 0 of \d+ bytes in its layer sha256:/,
    )
    t.match(pods.eventTexts().join('\n'), /ImageDamaged: the image damaged:1 is damaged on this machine/)
  })

  await t.test('an image whose program fails is not damaged', async () => {
    await pods.until('fails', reasonIs('CrashLoopBackOff'))
  })

  await t.test('the doctor names it, and no other', async (t) => {
    const { damaged, images, checked } = await checkImages(dockerd.socket, dockerd.rootDirectory, 60_000)
    t.equal(checked, images)
    t.same(
      damaged.map(({ name }) => name),
      ['damaged:1'],
    )
  })

  await t.test('without its containers it can be removed and had again', async () => {
    await withoutImage(dockerd, 'damaged:1')
    await dockerd.importImage('damaged:1')
    await pods.until('web', isReady)
  })
})

/** The files of the program in the layer of `damaged:1`. */
async function programsOf({ rootDirectory }: TestDockerd): Promise<readonly string[]> {
  const folder = join(rootDirectory, 'overlay2')
  const layers = (await readdir(folder)).map((name) => join(folder, name, 'diff'))
  return layers
    .map((layer) => join(layer, 'bin/busybox'))
    .filter((file) => existsSync(file) && !existsSync(join(file, '../../mark')))
}

test('an image of which Docker lost a layer waits with the cause, and its pod runs after the remedy', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  if ((await dockerd.docker.info()).Driver !== 'overlay2') return
  const registry = await startRegistry(t)
  registry.add('lost', '1', { layers: [await busyboxLayer()] })
  const image = `${registry.host}/lost:1`
  const pods = nodeOnDocker(t, dockerd)
  const main = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: listening }
  pods.want(aPod({ name: 'web', uid: 'uid-web', containers: [main] }))
  await pods.until('web', isReady)

  await dockerd.cutPower()
  const [id] = (await namedImages(dockerd.rootDirectory)).filter(({ name }) => name === image)
  const [layer = ''] = chainIDs(await layersOf(dockerd, id?.id ?? ''))
  const images = join(dockerd.rootDirectory, 'image/overlay2')
  const record = join(images, 'layerdb', layer.replace(':', '/'))
  await truncate(join(record, 'diff'), 0)
  await dockerd.start()
  const status = await pods.until(
    'web',
    (status) => statusOf(status, 'main')?.state?.waiting?.reason === 'ImageDamaged',
  )
  t.match(statusOf(status, 'main')?.state?.waiting?.message, "Docker's record of a layer is lost")

  // The remedy of docs/operating.md.
  await dockerd.stop()
  await rm(join(images, 'imagedb/content', (id?.id ?? '').replace(':', '/')))
  await rm(record, { recursive: true })
  await dockerd.start()
  await pods.until('web', isReady)
})

/** The remedy of the message. */
async function withoutImage({ docker }: TestDockerd, image: string): Promise<void> {
  for (const { Id } of await docker.listContainers({ all: true, filters: { ancestor: [image] } })) {
    await docker.getContainer(Id).remove({ force: true })
  }
  await docker.getImage(image).remove({ force: true })
}

async function layersOf({ rootDirectory }: TestDockerd, id: string): Promise<readonly string[]> {
  const file = join(rootDirectory, 'image/overlay2/imagedb/content', id.replace(':', '/'))
  return JSON.parse(await readFile(file, 'utf8')).rootfs.diff_ids
}
