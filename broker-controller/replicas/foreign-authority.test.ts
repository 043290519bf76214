import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { certificatesIn } from '../../api/text/pem.ts'
import { openAuthority } from '../../certs/authority.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { beginRollover, changeOver, finishRollover } from '../../certs/rollover.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ensureClusterInfo } from '../assembly/bootstrap-objects.ts'
import { memoryStore } from '../store/memory-store.ts'
import { ForeignAuthorityError, followAuthority, nextAuthorityStep } from './foreign-authority.ts'

test('what the files of a controller need is decided by the authority that signs, then by those that are trusted', async (t) => {
  const step = (held: readonly (string | undefined)[] | undefined, signing: string | undefined, trusted: string) => {
    const [hash = '', next, previous] = held ?? []
    const files = held && { hash, ...(next && { next }), ...(previous && { previous }) }
    return nextAuthorityStep(files, { signing, trusted: trusted.split(' ').filter((one) => one !== '') })
  }
  t.same(step(undefined, undefined, ''), 'none', 'a new fleet has no authority yet')
  t.same(step(['b', 'c', 'a'], undefined, ''), 'none')
  t.same(step(undefined, 'a', 'a'), { refused: 'absent' })
  t.same(step(['x'], 'a', 'a'), { refused: 'another' })
  t.same(step(['x'], 'a', 'a b'), { refused: 'another' })
  t.same(step(['a'], 'a', 'a'), 'none')
  t.same(step(['a'], undefined, 'a'), 'none', 'an earlier version published no authority that signs')
  t.same(step(['a', 'b'], 'a', 'a'), 'none', 'begun here, and not published yet')
  t.same(step(['a', 'b'], 'a', 'a b'), 'none')
  t.same(step(['a'], 'a', 'a b'), 'none', 'files of before the begin: nothing is signed by the next one')
  t.same(step(['b', undefined, 'a'], 'a', 'a b'), 'none', 'changed over here, and not published yet')
  t.same(step(['a', 'b'], 'b', 'b a'), 'change-over')
  t.same(step(['a', 'b'], 'b', 'b'), 'change-over', 'and then the previous one is removed')
  t.same(step(['a'], 'b', 'b a'), { refused: 'previous' })
  t.same(step(['a', 'c'], 'b', 'b a'), { refused: 'previous' }, 'another rollover was begun here')
  t.same(step(['a', undefined, 'z'], 'b', 'b a'), { refused: 'previous' })
  t.same(step(['a'], 'b', 'b'), { refused: 'another' })
  t.same(step(['b', undefined, 'a'], 'b', 'b a'), 'none')
  t.same(step(['b', undefined, 'a'], 'b', 'b'), 'finish')
  t.same(step(['b'], 'b', 'b a'), 'none', 'finished here, and not published yet')
  t.same(step(['a', undefined, 'z'], 'a', 'a b'), 'finish', 'the next rollover was begun on another controller')
})

test('a controller with another authority than the fleet, or without one, is refused', async (t) => {
  const { folder, lead, follow } = await aFleet(t)
  const [own, other, none] = [folder('own'), folder('other'), folder('none')]
  await openAuthority(other, clock.wallMs())
  await follow(none)
  t.pass('a new fleet has no authority yet')

  await lead(own)
  await follow(own)
  await t.rejects(follow(other), ForeignAuthorityError)
  await t.rejects(follow(none), /none has no authority.*secrets\.key of another controller/)

  await beginRollover(own, clock.wallMs())
  await lead(own)
  await follow(own)
  t.pass('the next authority is trusted, and does not sign yet')
})

test('two fail-overs after a change-over: the authority that signs stays, whatever files the others have', async (t) => {
  const { folder, copied, lead, published } = await aFleet(t)
  const [a, b, c] = [folder('a'), folder('b'), folder('c')]
  const { hash: first } = await lead(a)
  await copied(a, c)
  await beginRollover(a, clock.wallMs())
  await copied(a, b)
  await lead(a)
  await changeOver(a)
  const { hash: second } = await lead(a)
  t.not(second, first)

  t.equal((await lead(b)).hash, second, 'files of after the begin: it changes over itself')
  t.same(await published(), [second, second, first])
  await t.rejects(lead(c), /c is the previous one.*signed by sha256:.*does not have\. Copy the authority folder/)
  t.same(await published(), [second, second, first], 'files of before the begin: it does not lead')
  t.same((await readdir(b)).sort(), ['ca.crt', 'ca.key', 'previous.crt'])

  await finishRollover(a)
  await lead(a)
  t.same(await published(), [second, second])
  t.equal((await lead(b)).hash, second)
  t.same(await published(), [second, second], 'an authority that is no longer trusted is not trusted again')
  t.same((await readdir(b)).sort(), ['ca.crt', 'ca.key'])
})

test('files of after the begin follow a rollover that was finished meanwhile', async (t) => {
  const { folder, copied, lead, published } = await aFleet(t)
  const [a, b] = [folder('a'), folder('b')]
  await lead(a)
  await beginRollover(a, clock.wallMs())
  await copied(a, b)
  await lead(a)
  await changeOver(a)
  await lead(a)
  await finishRollover(a)
  const { hash } = await lead(a)
  t.equal((await lead(b)).hash, hash)
  t.same(await published(), [hash, hash])
  t.same((await readdir(b)).sort(), ['ca.crt', 'ca.key'])
})

test('a controller that crashes while it follows does the rest when it starts again', async (t) => {
  for (const moment of ['previous.crt is there', 'the key is changed', 'the certificate is changed'] as const) {
    const { folder, copied, lead, published } = await aFleet(t)
    const [a, b] = [folder('a'), folder('b')]
    const { hash: first } = await lead(a)
    await beginRollover(a, clock.wallMs())
    await copied(a, b)
    await lead(a)
    await changeOver(a)
    const { hash: second } = await lead(a)
    await writeFile(join(b, 'previous.crt'), await readFile(join(b, 'ca.crt')))
    if (moment !== 'previous.crt is there') await rename(join(b, 'next.key'), join(b, 'ca.key'))
    if (moment === 'the certificate is changed') await rename(join(b, 'next.crt'), join(b, 'ca.crt'))
    t.equal((await lead(b)).hash, second, moment)
    t.same(await published(), [second, second, first])
    t.same((await readdir(b)).sort(), ['ca.crt', 'ca.key', 'previous.crt'])
  }
})

test('a controller with the certificate of the authority that signs, and not its key, is refused and changes nothing', async (t) => {
  const { folder, copied, lead, published } = await aFleet(t)
  const [a, b] = [folder('a'), folder('b')]
  await lead(a)
  await beginRollover(a, clock.wallMs())
  await copied(a, b)
  await lead(a)
  await changeOver(a)
  await lead(a)
  const before = await published()
  await rm(join(b, 'next.key'))
  await t.rejects(lead(b), ForeignAuthorityError)
  await t.rejects(lead(b), /signed by sha256:.*, and .*b\/next\.key is not there, or .*next\.crt\. Copy the authority/)
  t.same((await readdir(b)).sort(), ['ca.crt', 'ca.key', 'next.crt'])
  t.same(await published(), before)
})

/** Controllers with a folder each and one store. */
async function aFleet(t: Test) {
  const root = await mkdtemp(join(tmpdir(), 'bramble-foreign-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const store = memoryStore({ clock })
  const follow = (folder: string) => followAuthority(store, folder, quietLog(t))
  return {
    folder: (name: string) => join(root, name),
    copied: (from: string, to: string) => cp(from, to, { recursive: true }),
    follow,
    /** As a controller with these files does when it has won an election. */
    async lead(folder: string) {
      await follow(folder)
      const own = await openAuthority(folder, clock.wallMs())
      const info = { server: 'https://a:6443', mqttPort: 8883, caHash: own.hash, trusted: own.trusted }
      await ensureClusterInfo({ store, clock }, info)
      return own
    },
    /** Hashes: of the authority that signs, and of all that are trusted. */
    async published() {
      const info = await store.get('configmaps', { namespace: 'kube-public', name: 'cluster-info' })
      const { caHash: signing, authorities = '' } = info?.data ?? {}
      return [signing, ...certificatesIn(authorities).map((one) => caHash(one))]
    },
  }
}
