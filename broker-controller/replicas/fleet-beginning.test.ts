import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { ApiError } from '../../api/api-error.ts'
import { openAuthority } from '../../certs/authority.ts'
import { systemClock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ensureClusterInfo } from '../assembly/bootstrap-objects.ts'
import { memoryStore } from '../store/memory-store.ts'
import { SecretsKeyError } from '../store/store.ts'
import { fleetBeginning } from './fleet-beginning.ts'
import { ForeignAuthorityError } from './foreign-authority.ts'

async function aController(t: Test, verifySecretsKey: () => Promise<void> = async () => undefined) {
  const root = await mkdtemp(join(tmpdir(), 'bramble-beginning-'))
  t.teardown(() => rm(root, { recursive: true }))
  const [folder, other] = [join(root, 'own'), join(root, 'other')]
  await openAuthority(folder, systemClock.wallMs())
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const log = quietLog(t, 'Cannot write to the store yet')
  let withdrawn = 0
  const controllers = { withdraw: async () => void withdrawn++ }
  const loop = fleetBeginning({ store, controllers, folder, verifySecretsKey, clock, log })
  const stop = new AbortController()
  let end: unknown = 'none'
  const running = loop.run(stop.signal).then(
    () => {
      end = 'stopped'
    },
    (error: unknown) => {
      end = error
    },
  )
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return {
    ...{ clock, folder, other },
    end: () => end,
    withdrawn: () => withdrawn,
    /** As a controller with this authority that begins to lead. */
    async begin(of: string) {
      const { trusted, hash } = await openAuthority(of, systemClock.wallMs())
      const info = { server: 'https://10.0.0.1:6443', mqttPort: 8883, trusted, caHash: hash }
      await ensureClusterInfo({ store, clock }, info)
    },
    /** Files are read between the looks. */
    async look() {
      for (let turn = 0; turn < 20; turn++) {
        await clock.advance(500)
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    stop: () => stop.abort(),
  }
}

test('a controller goes on with the fleet that it or a controller with the same files has made', async (t) => {
  const { clock, begin, folder, look, end, withdrawn, stop } = await aController(t)
  await clock.advance(60_000)
  t.equal(end(), 'none', 'there is no fleet yet')
  await begin(folder)
  await look()
  t.equal(end(), 'none')
  t.equal(withdrawn(), 0)
  stop()
  await look()
  t.equal(end(), 'stopped')
})

test('one with another authority than the one that was first ends, and withdraws its address', async (t) => {
  const { clock, begin, other, look, end, withdrawn } = await aController(t)
  await clock.advance(1_000)
  await begin(other)
  while (end() === 'none') await look()
  t.type(end(), ForeignAuthorityError)
  t.match(end(), {
    message: /own is another one, and the fleet in this store trusts sha256:.*Copy the authority folder/,
  })
  t.equal(withdrawn(), 1)
})

test('one with another key of Secrets ends too; a store that does not answer is asked again', async (t) => {
  let asked = 0
  const { begin, folder, look, end, withdrawn } = await aController(t, async () => {
    asked++
    if (asked === 1) throw new ApiError('ServiceUnavailable', 'etcd is away')
    throw new SecretsKeyError('secrets.key does not contain it')
  })
  await begin(folder)
  while (end() === 'none') await look()
  t.type(end(), SecretsKeyError)
  t.equal(asked, 2)
  t.equal(withdrawn(), 1)
})
