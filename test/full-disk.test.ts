import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { type Controller, startController } from './support/fleet.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'
import { smallDisk } from './support/small-disk.ts'
import { eventually } from './support/wait.ts'

const chunk = 900_000

test('on a full disk deletions and a start work, and creations work again after deletions', {
  skip: skipWithout('root', isRoot()),
  timeout: 300_000,
}, async (t) => {
  const mount = await smallDisk(t, 64)
  const options = { dataDir: join(mount, 'controller'), settings: { podNetwork: 'node', auditLogPath: '' } }
  let controller = await startController(t, options)
  await reserveHeld(controller)

  const refused = await filledUp(controller, 'a')
  t.match(
    refused.message,
    /The disk of \S+ has [\d.]+ [KM]iB free: objects cannot be created or grow\. Free space on it/,
  )
  t.ok(refused.created > 20, 'most of the disk is used before')
  const verbose = await controller.kubectl('get', '--raw', '/readyz?verbose')
  t.match(verbose, /\[!\]store-space warning: the disk of \S+ has [\d.]+ [KM]iB free/)
  t.match(verbose, /readyz check passed/)

  for (let i = 0; i < 10; i++) t.match(await controller.tryKubectl('delete', 'configmap', `a-${i}`), { code: 0 })
  t.equal(
    (await filledUp(controller, 'b', 5)).created,
    5,
    'deletions make room for creations, although the file stays as it is',
  )

  const others = [await fill(mount, 'other')]
  for (let i = 10; i < 20; i++) t.match(await controller.tryKubectl('delete', 'configmap', `a-${i}`), { code: 0 })
  t.match(await controller.tryKubectl('annotate', 'configmap', 'a-20', `note=${'x'.repeat(5000)}`), {
    code: 1,
    stderr: /objects cannot be created or grow/,
  })

  await controller.program.stop()
  others.push(await fill(mount, 'more'))
  controller = await startController(t, options)
  t.match(await controller.tryKubectl('delete', 'configmap', 'a-20'), { code: 0 })
  t.match(await controller.tryKubectl('create', 'configmap', 'small'), { code: 1, stderr: /cannot be created/ })

  for (const other of others) await rm(other)
  await eventually(
    'creations are accepted again',
    async () => (await controller.tryKubectl('create', 'configmap', 'small')).code === 0,
  )
  await reserveHeld(controller)
  t.equal(await controller.program.stop(), 0)
})

function reserveHeld(controller: Controller) {
  const held = async () => (await controller.kubectl('get', '--raw', '/metrics')).includes('disk_reserve_held 1')
  return eventually('the reserve is on the disk', held)
}

/** As another program would: until the disk is full. */
async function fill(folder: string, name: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, randomBytes(64 * 2 ** 20)).catch(() => undefined)
  return path
}

/** Creates ConfigMaps until one is refused. */
async function filledUp(controller: Controller, prefix: string, most = 200) {
  const data = { text: 'x'.repeat(chunk) }
  for (let created = 0; created < most; created++) {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${prefix}-${created}` }, data }
    const message = await controller.kubectlWith(JSON.stringify(object), 'create', '-f', '-').then(
      () => undefined,
      (error: unknown) => String(error),
    )
    if (message !== undefined) return { created, message }
  }
  return { created: most, message: '' }
}
