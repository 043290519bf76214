import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import {
  type AgentIdentity,
  findIdentity,
  readIdentity,
  renewIdentity,
  repairIdentity,
  writeIdentity,
} from './identity.ts'

const copyUsed = 'The identity of this node is damaged, its copy is used'

function identity(key = 'key'): AgentIdentity {
  const [apiUrl, mqttUrl] = ['https://hub.example:6443', 'mqtts://hub.example:8883']
  return { nodeName: 'pi-1', apiUrl, mqttUrl, ca: 'authority', certificate: `of ${key}`, key }
}

test('who this machine is, is written twice, for its owner alone', async (t) => {
  const folder = join(testFolder(t), 'agent')
  t.equal(await findIdentity(folder), undefined, 'it has not joined')
  await writeIdentity(folder, identity())
  t.same(await findIdentity(folder), { identity: identity() })
  for (const name of await readdir(folder)) t.equal((await stat(join(folder, name))).mode & 0o777, 0o600, name)
  const before = await stat(join(folder, 'identity.json'))
  await repairIdentity(folder, { identity: identity() }, quietLog(t))
  t.equal((await stat(join(folder, 'identity.json'))).ino, before.ino, 'what is as it should be is not written again')
})

test('a file that a card damaged is renamed, and written again from its copy', async (t) => {
  for (const damage of [
    (text: string) => text.replace('hub', 'hvb'),
    (text: string) => text.replace('"key": "key"', '"key": "kez"'),
    (text: string) => text.replace('"ca"', '"cb"'),
    (text: string) => text.slice(0, text.length / 2),
    () => '',
    () => '\0'.repeat(100),
    () => 'null',
  ]) {
    const folder = testFolder(t)
    const path = join(folder, 'identity.json')
    await writeIdentity(folder, identity())
    const damaged = damage(await readFile(path, 'utf8'))
    await writeFile(path, damaged)
    await t.rejects(readIdentity(folder), {
      message: 'Restart the agent: the copy of its identity is valid',
      cause: { message: /identity.json is damaged/ },
    })
    const found = await findIdentity(folder)
    t.match(found, { identity: identity(), damaged: Error })
    if (found !== undefined) await repairIdentity(folder, found, quietLog(t, copyUsed))
    t.same(await findIdentity(folder), { identity: identity() }, 'from now on it is whole')
    t.equal(await readFile(`${path}.unreadable`, 'utf8'), damaged)
  }
})

test('a copy that was damaged is written again, too', async (t) => {
  const folder = testFolder(t)
  await writeIdentity(folder, identity())
  const copy = join(folder, 'identity.json.copy')
  const whole = await readFile(copy, 'utf8')
  await writeFile(copy, whole.slice(9))
  await repairIdentity(folder, { identity: identity() }, quietLog(t))
  t.equal(await readFile(copy, 'utf8'), whole)
})

test('wherever a renewal is cut off, there is a key with its certificate', async (t) => {
  const [before, after] = [testFolder(t, { before: {}, after: {} })].flatMap((one) => [`${one}/before`, `${one}/after`])
  await writeIdentity(before ?? '', identity('old'))
  await writeIdentity(after ?? '', identity('new'))
  const files = async (name: string) =>
    Promise.all([before, after].map((folder) => readFile(join(folder ?? '', name), 'utf8')))
  const [oldFile = '', newFile = ''] = await files('identity.json')
  const [oldCopy = '', newCopy = ''] = await files('identity.json.copy')
  const halfOf = (text: string) => text.slice(0, text.length / 2)
  for (const [file, copy, expected] of [
    [halfOf(newFile), oldCopy, 'old'], // on a card that confirms a write too early
    [newFile, oldCopy, 'new'],
    [newFile, halfOf(newCopy), 'new'],
    [oldFile, newCopy, 'old'],
  ] as const) {
    const folder = testFolder(t, { 'identity.json': file, 'identity.json.copy': copy })
    t.same((await findIdentity(folder))?.identity, identity(expected))
  }
})

test('what an earlier agent wrote has no checksum and no copy, and gets them', async (t) => {
  const folder = testFolder(t, { 'identity.json': JSON.stringify(identity()) })
  const found = await findIdentity(folder)
  t.same(found, { identity: identity() })
  await repairIdentity(folder, { identity: identity() }, quietLog(t))
  const [file, copy] = await Promise.all(
    ['identity.json', 'identity.json.copy'].map((name) => readFile(join(folder, name), 'utf8')),
  )
  t.match(file, /"sha256"/)
  t.equal(file, copy)
})

test('without a copy one that is damaged is an error, not a machine that has not joined', async (t) => {
  const folder = testFolder(t, { 'identity.json': '{"nodeName": "pi"}' })
  await t.rejects(findIdentity(folder), {
    message: 'Join again with a new token',
    cause: { message: /identity.json is damaged: apiUrl: Required/ },
  })
  t.ok(await readFile(join(folder, 'identity.json')), 'it is left as it was')
  await writeIdentity(folder, identity())
  await rm(join(folder, 'identity.json'))
  t.equal(await findIdentity(folder), undefined, 'one that was taken away is not put back')
})

test('a disk that takes no writes is logged, and the copy is used', async (t) => {
  const folder = testFolder(t)
  await writeIdentity(folder, identity())
  await rm(join(folder, 'identity.json'))
  await mkdir(join(folder, 'identity.json'))
  const found = await findIdentity(folder)
  t.match(found, { identity: identity(), damaged: { message: /Cannot read/ } })
  if (found === undefined) return
  await repairIdentity(folder, found, quietLog(t, copyUsed, 'Cannot rename a damaged file', 'Cannot save the identity'))
})

test('an agent that runs on renews its own identity, never the one that the machine was given since', async (t) => {
  const folder = testFolder(t)
  await renewIdentity(folder, identity(), identity())
  await renewIdentity(folder, identity(), identity('later'))
  t.same(await readIdentity(folder), identity('later'))
  const trusting = (...names: readonly string[]) => ({ ...identity(), ca: names.map(authority).join('') })
  await writeIdentity(folder, trusting('old'))
  await renewIdentity(folder, trusting('old'), trusting('new', 'old'))
  for (const other of [{ ...trusting('old'), nodeName: 'pi-2' }, trusting('of another fleet')]) {
    await writeIdentity(folder, other)
    await t.rejects(
      renewIdentity(folder, trusting('old'), trusting('new', 'old')),
      /has joined again since, as node pi-.*: restart the agent/,
    )
    t.same(await readIdentity(folder), other)
  }
})

test('an identity that was not written down through a whole change of the authority is, as soon as it can be', async (t) => {
  const folder = testFolder(t)
  const before = { ...identity(), ca: authority('old') }
  await writeIdentity(folder, before)
  await renewIdentity(folder, before, { ...before, ca: authority('new') })
  t.same(await readIdentity(folder), { ...before, ca: authority('new') })
})

function authority(name: string): string {
  return `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`
}
