import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { ensureClusterInfo } from '../bootstrap-objects.ts'
import { memoryStore } from '../store/memory-store.ts'
import { ForeignAuthorityError, refuseForeignAuthority } from './foreign-authority.ts'

test('a controller with another authority than the fleet, or without one, is refused', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-foreign-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [own, other, none] = ['own', 'other', 'none'].map((name) => join(folder, name))
  if (own === undefined || other === undefined || none === undefined) throw new Error('There are three folders')
  const authority = await openAuthority(own, clock.wallMs())
  const foreign = await openAuthority(other, clock.wallMs())
  const store = memoryStore({ clock })
  await refuseForeignAuthority(store, none)
  t.pass('a new fleet has no authority yet')

  const info = { server: 'https://a:6443', mqttPort: 8883, caHash: authority.hash }
  await ensureClusterInfo({ store, clock }, { ...info, trusted: authority.trusted })
  await refuseForeignAuthority(store, own)
  await t.rejects(refuseForeignAuthority(store, other), ForeignAuthorityError)
  await t.rejects(refuseForeignAuthority(store, none), /none has no authority.*secrets\.key of another controller/)

  const both = `${authority.trusted}${foreign.trusted}`
  await ensureClusterInfo({ store, clock }, { ...info, trusted: both })
  await refuseForeignAuthority(store, other)
  t.pass('during a rollover both are trusted')
})
