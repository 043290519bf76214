import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import { receiveCopy, sendCopy } from './volume-copy.ts'

const run = promisify(execFile)
const skip = skipWithout('root', isRoot())
const { signal } = new AbortController()

/** A folder that receives archives, and one beside it that must stay as it is. */
async function aReceiver(t: Test) {
  const root = await mkdtemp(join(tmpdir(), 'bvc-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const [data, outside] = [join(root, 'data'), join(root, 'outside')]
  for (const folder of [data, outside]) await mkdir(folder)
  await writeFile(join(outside, 'kept'), 'kept')
  /** An archive of what `make` puts into an empty folder. */
  const archive = async (make: (folder: string) => Promise<void>, ...names: readonly string[]): Promise<Buffer> => {
    const folder = await mkdtemp(join(root, 'sent-'))
    await make(folder)
    const file = `${folder}.tar`
    await run('tar', ['--create', '--format=posix', '-P', `--file=${file}`, `--directory=${folder}`, ...names])
    return await readFile(file)
  }
  const receive = async (content: Buffer) => {
    const pieces = [content]
    await receiveCopy(data, async () => pieces.shift(), signal)
  }
  return { root, data, outside, archive, receive }
}

test('an archive writes only into its folder', { skip }, async (t) => {
  const { data, outside, archive, receive } = await aReceiver(t)
  await receive(await archive((folder) => symlink(outside, join(folder, 'away')), '.'))
  const through = await archive(async (folder) => {
    await mkdir(join(folder, 'away'))
    await writeFile(join(folder, 'away', 'written'), 'x')
  }, './away/written')
  await t.rejects(receive(through), { message: /^tar cannot write / }, 'it follows the link of an earlier copy')
  const absolute = await archive((folder) => writeFile(join(folder, 'x'), 'x'), '--transform=s,^,../outside/,', 'x')
  await receive(absolute).catch(() => undefined)
  t.same(await readdir(outside), ['kept'])
  t.ok((await readdir(data)).includes('away'))
})

test('an archive renames nothing outside of its folder', { skip }, async (t) => {
  const { root, data, outside, archive, receive } = await aReceiver(t)
  await receive(await archive((folder) => symlink(outside, join(folder, 'away')), '.'))
  const dump = 'Raway/kept\0Taway/moved\0\0'
  await receive(paxFolder({ 'GNU.dumpdir': dump })).catch(() => undefined)
  t.same(await readdir(outside), ['kept'])
  t.ok(existsSync(data) && existsSync(root))
})

test('the programs of the machine cannot be replaced by an archive', { skip }, async (t) => {
  const { archive, receive } = await aReceiver(t)
  await receive(await archive((folder) => symlink('/usr', join(folder, 'usr')), '.'))
  const through = await archive(async (folder) => {
    await mkdir(join(folder, 'usr'))
    await writeFile(join(folder, 'usr', 'bramble-test-file'), 'x')
  }, './usr/bramble-test-file')
  await t.rejects(receive(through), { message: /Read-only file system/ })
  t.notOk(existsSync('/usr/bramble-test-file'))
})

/** An archive with the folder `.` and these extended headers (pax, POSIX.1-2001). */
function paxFolder(headers: Readonly<Record<string, string>>): Buffer {
  const records = Object.entries(headers).map(([name, value]) => {
    const rest = ` ${name}=${value}\n`
    const digits = (length: number): number => {
      const total = String(length).length + rest.length
      return total === length ? length : digits(total)
    }
    return `${digits(rest.length + 2)}${rest}`
  })
  const extended = Buffer.from(records.join(''), 'latin1')
  const padded = Buffer.alloc(Math.ceil(extended.length / 512) * 512)
  extended.copy(padded)
  return Buffer.concat([
    header('./PaxHeaders/.', 'x', extended.length),
    padded,
    header('./', '5', 0),
    Buffer.alloc(1024),
  ])
}

function header(name: string, type: string, size: number): Buffer {
  const block = Buffer.alloc(512)
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  block.write(name, 0)
  block.write(`${octal(0o755, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0`, 100)
  block.write('        ', 148)
  block.write(type, 156)
  block.write('ustar\x0000', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0 `, 148)
  return block
}

async function aFolder(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'bvc-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'data'))
  return { data: join(folder, 'data'), snapshot: join(folder, 'snapshot') }
}

test('a copy that is stopped before tar has written anything rejects once, and leaves no rejection without a handler', {
  skip,
}, async (t) => {
  const { data: folder, snapshot } = await aFolder(t)
  await writeFile(join(folder, 'file'), 'x')
  for (let turns = 0; turns < 20; turns++) {
    const stop = new AbortController()
    const sent = sendCopy({ folder, since: undefined, snapshot, isLive: true }, async () => undefined, stop.signal)
    sent.catch(() => undefined)
    for (let turn = 0; turn < turns; turn++) await setImmediate()
    stop.abort()
    const [result] = await Promise.allSettled([sent])
    t.match(result?.status, /rejected|fulfilled/)
  }
})

test('a copy that tar does not take has the reason of tar, not the pipe that broke', { skip }, async (t) => {
  const { data } = await aFolder(t)
  const pieces = Array.from({ length: 200 }, () => Buffer.alloc(65_536, 'x'))
  const received = receiveCopy(data, async () => pieces.shift(), new AbortController().signal)
  await t.rejects(received, {
    name: 'VolumeError',
    message: /^tar cannot write .*: tar: This does not look like a tar archive/,
  })
})
