import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { messageCodec } from '../../../daemon/protobuf/protobuf-codec.ts'
import { GrpcError, isFinalError } from '../../pods/volumes/csi/grpc-error.ts'
import { type CsiDriverOptions, csiDriver } from '../../testing/csi-driver.ts'
import { csiClient, csiRegistration } from './csi-client.ts'
import { grpcCall } from './grpc-call.ts'

async function driverOf(t: { teardown(end: () => Promise<void>): void }, options?: CsiDriverOptions) {
  const folder = await mkdtemp(join(tmpdir(), 'csi-'))
  const driver = await csiDriver(folder, options)
  t.teardown(async () => {
    await driver.close()
    await rm(folder, { recursive: true, force: true })
  })
  return { folder, driver }
}

test('a driver is asked what it is and what it can do', async (t) => {
  const topology = { 'topology.example.com/node': 'a' }
  const { driver } = await driverOf(t, { maxVolumes: 12, topology, capabilities: [1, 5, 6] })
  const registration = csiRegistration(driver.registrationSocket)
  t.same(await registration.getInfo(), {
    ...{ type: 'CSIPlugin', name: 'disk.example.com', endpoint: driver.endpoint, supportedVersions: ['1.0.0'] },
  })
  const client = csiClient(driver.endpoint)
  t.same(await client.nodeInfo(), { nodeId: 'node-1', maxVolumes: 12, topology })
  t.same(await client.capabilities(), {
    ...{ stages: true, mountsWithGroup: true, hasSingleNodeModes: true },
    ...{ expands: false, hasStats: false, hasCondition: false },
  })
  await registration.notify('')
  await registration.notify('the node has another one')
  t.same(
    driver.calls.slice(-2).map(({ request }) => request),
    [
      { registered: true, error: '' },
      { registered: false, error: 'the node has another one' },
    ],
  )
})

test('a driver receives the whole request of a volume', async (t) => {
  const { folder, driver } = await driverOf(t)
  const request = {
    ...{ volumeId: 'v', publishContext: { device: '/dev/x' }, stagingTargetPath: '/stage' },
    ...{ targetPath: join(folder, 'target'), readonly: true },
    volumeCapability: {
      ...{ block: undefined, accessMode: { mode: 5 } },
      mount: { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '7' },
    },
    ...{ secrets: { password: 'p' }, volumeContext: { a: 'b' } },
  }
  await csiClient(driver.endpoint).publish(request)
  t.same(driver.calls, [{ name: 'NodePublishVolume', request }])
})

test('the refusal of a driver is shown in its words, and is final unless it may still be at work', async (t) => {
  const { driver } = await driverOf(t)
  const client = csiClient(driver.endpoint)
  const refused = async (code: number) => {
    driver.fail('NodeUnstageVolume', code, 'größe: 100 %')
    return await client.unstage({ volumeId: 'v', stagingTargetPath: '/s' }).catch((error: unknown) => error)
  }
  const error = await refused(13)
  t.match(error, { code: 13, message: 'rpc error: code = Internal desc = größe: 100 %' })
  const final: number[] = []
  for (const code of [1, 2, 3, 4, 5, 8, 10, 13, 14, 16]) if (isFinalError(await refused(code))) final.push(code)
  t.same(final, [2, 3, 5, 13, 16])
  t.notOk(isFinalError(new Error('x')))
})

test('a driver that is away or never answers is an error in time', async (t) => {
  const { folder, driver } = await driverOf(t)
  const away = await csiClient(join(folder, 'no.sock'))
    .nodeInfo()
    .catch((error: unknown) => error)
  t.match(away, { code: 14, message: /no\.sock cannot be reached: ENOENT$/ })
  driver.hang('NodeGetInfo')
  const late = await csiClient(driver.endpoint, 40)
    .nodeInfo()
    .catch((error: unknown) => error)
  t.match(late, { code: 4, message: /NodeGetInfo was not answered within 0.04 s$/ })
  driver.heal()
  t.equal((await csiClient(driver.endpoint).nodeInfo()).nodeId, 'node-1')
})

test('what is not gRPC, and what is not the message, is an error', async (t) => {
  const { folder, driver } = await driverOf(t)
  const noise = createServer(
    (socket) => void socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
  )
  const path = join(folder, 'noise.sock')
  await new Promise<void>((resolve) => void noise.listen(path, resolve))
  t.teardown(() => void noise.close())
  t.ok(
    (await csiClient(path)
      .nodeInfo()
      .catch((error: unknown) => error)) instanceof GrpcError,
  )
  const wrong = messageCodec({})
  const answer = {
    ...wrong,
    decode: () => {
      throw new RangeError('The message ends within a field')
    },
  }
  const method = { path: '/csi.v1.Node/NodeGetInfo', request: wrong, answer }
  await t.rejects(grpcCall(driver.endpoint, method, {}, 1_000), { code: 13, message: /what is not its message/ })
  const unknown = { path: '/csi.v1.Node/NodeOther', request: wrong, answer: wrong }
  await t.rejects(grpcCall(driver.endpoint, unknown, {}, 1_000), { code: 12 })
})
