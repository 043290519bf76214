import { existsSync } from 'node:fs'
import { readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { checkImages } from '../agent/doctor/adapters/stored-images.ts'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { isReady, listening, nodeOnDocker, statusOf } from './support/pods.ts'

test('an image that a power cut damaged is named, and its pod runs again after the remedy', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage('damaged:1')
  await dockerd.importImage('whole:1', ['sh'], [{ path: 'mark', mode: 0o644, content: Buffer.from('another layer') }])
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
    for (const { Id } of await dockerd.docker.listContainers({ all: true, filters: { ancestor: ['damaged:1'] } })) {
      await dockerd.docker.getContainer(Id).remove({ force: true })
    }
    await dockerd.docker.getImage('damaged:1').remove({ force: true })
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
