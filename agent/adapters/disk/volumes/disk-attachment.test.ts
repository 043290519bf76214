import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { MountPoint } from '../mounts.ts'
import { diskAttachment } from './disk-attachment.ts'

const uuid = '3f333df9-90a4-4dda-8dd3-9485d27cee36'

/** A machine whose devices are files. */
async function aMachine(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'da-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [links, path] = [join(folder, 'by-uuid'), join(folder, 'disks', uuid)]
  await mkdir(links)
  const mounted: MountPoint[] = []
  const calls: string[] = []
  const world = { nowMs: 0, failure: undefined as Error | undefined, device: join(folder, 'sda1') }
  const attach = diskAttachment({
    ...{ uuid, path, links, nowMs: () => world.nowMs, points: async () => mounted },
    async mount(given, at) {
      calls.push(`mount ${given}`)
      if (world.failure !== undefined) throw world.failure
      mounted.push({ path: at, type: 'ext4', source: world.device })
    },
    async unmountAt(at) {
      calls.push('unmount')
      mounted.splice(mounted.findIndex((one) => one.path === at))
    },
  })
  const plug = async (device: string) => {
    world.device = join(folder, device)
    await writeFile(world.device, '')
    await writeFile(join(links, uuid), '')
  }
  const unplug = async () => {
    await rm(world.device)
    await rm(join(links, uuid))
  }
  return { attach, plug, unplug, calls, world, links }
}

test('a disk is mounted once, however many ask for it', async (t) => {
  const { attach, plug, calls } = await aMachine(t)
  await plug('sda1')
  await Promise.all([attach(), attach()])
  await attach()
  t.same(calls, [`mount ${uuid}`])
})

test('a disk that is not attached starts no program', async (t) => {
  const { attach, calls } = await aMachine(t)
  await t.rejects(attach(), { name: 'VolumeError', message: `no disk with the UUID ${uuid} is attached` })
  t.same(calls, [])
})

test('a disk that was removed is unmounted, and mounted again under its new name', async (t) => {
  const { attach, plug, unplug, calls } = await aMachine(t)
  await plug('sda1')
  await attach()
  await unplug()
  await t.rejects(attach(), { message: /is attached$/ })
  await t.rejects(attach(), { message: /is attached$/ })
  await plug('sdb1')
  await attach()
  t.same(calls, [`mount ${uuid}`, 'unmount', `mount ${uuid}`])
})

test('a mount that fails is tried again after a while, and not for each pod', async (t) => {
  const { attach, plug, calls, world } = await aMachine(t)
  await plug('sda1')
  world.failure = new Error('wrong fs type')
  await t.rejects(attach(), { message: 'wrong fs type' })
  await t.rejects(attach(), { message: 'wrong fs type' })
  t.equal(calls.length, 1)
  world.failure = undefined
  world.nowMs = 10_000
  await attach()
  t.equal(calls.length, 2)
})

test('a machine without udev tries each disk', async (t) => {
  const { attach, calls, links } = await aMachine(t)
  await rm(links, { recursive: true })
  await attach()
  t.same(calls, [`mount ${uuid}`])
})
