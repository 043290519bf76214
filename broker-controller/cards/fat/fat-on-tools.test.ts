/** What is written into a FAT, judged by others: made by mkfs.vfat, checked by fsck.vfat, read by mtools. */
import { execFileSync } from 'node:child_process'
import { open, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { rangeOf } from '../disk-range.ts'
import { FatVolume } from './fat-volume.ts'

const nowMs = Date.UTC(2026, 10, 29, 12, 34, 56)
const env = { ...process.env, TZ: 'UTC', MTOOLS_SKIP_CHECK: '1' }
const content = (bytes: Uint8Array) => ({ size: bytes.length, chunks: [bytes] })

/** As pi-gen makes the boot partition of Debian 12 and of Debian 13, and others that Linux takes. */
const forms = [
  { name: 'Raspberry Pi OS bookworm', bytes: 512 * 2 ** 20, options: ['-F', '32', '-s', '4', '-n', 'bootfs'] },
  { name: 'Raspberry Pi OS trixie', bytes: 512 * 2 ** 20, options: ['-F', '32', '-s', '1', '-n', 'bootfs'] },
  { name: 'FAT16', bytes: 64 * 2 ** 20, options: ['-F', '16', '-n', 'bootfs'] },
  { name: 'sectors of 4096 bytes', bytes: 512 * 2 ** 20, options: ['-F', '32', '-S', '4096'] },
  { name: 'one copy of the table', bytes: 64 * 2 ** 20, options: ['-F', '32', '-s', '1', '-f', '1'] },
] as const

async function madeFat(t: Test, bytes: number, options: readonly string[]): Promise<string> {
  const path = join(testFolder(t), 'fat')
  await writeFile(path, '')
  await truncate(path, bytes)
  execFileSync('mkfs.vfat', [...options, path], { stdio: 'pipe', env })
  return path
}

async function withFat(path: string, act: (fat: FatVolume) => Promise<void>): Promise<void> {
  const file = await open(path, 'r+')
  try {
    const fat = await FatVolume.open(rangeOf(file, 0, (await file.stat()).size), nowMs)
    await act(fat)
    await fat.flush()
  } finally {
    await file.close()
  }
}

/** fsck.vfat's status is not 0 if it would change anything. */
const check = (path: string) => execFileSync('fsck.vfat', ['-n', '-v', path], { env }).toString()
const readByOthers = (path: string, name: string) =>
  execFileSync('mtype', ['-i', path, `::${name}`], { env, maxBuffer: 2 ** 28 })

for (const { name, bytes, options } of forms) {
  test(`files are written into a FAT of the form "${name}" as others read them`, async (t) => {
    const path = await madeFat(t, bytes, options)
    const long = seededRandom(1)
    const big = Buffer.from(Array.from({ length: 300_001 }, () => Math.floor(long() * 256)))
    await writeFile(`${path}.there`, 'console=tty1\n')
    execFileSync('mcopy', ['-i', path, `${path}.there`, '::cmdline.txt'], { env })
    execFileSync('mmd', ['-i', path, '::overlays'], { env })
    await withFat(path, async (fat) => {
      t.same(await fat.list([]), ['cmdline.txt', 'overlays'])
      t.equal(String(await fat.read(['CMDLINE.TXT'], 100)), 'console=tty1\n')
      await fat.write(['cmdline.txt'], content(Buffer.from('console=tty1 more\n')))
      await fat.write(['bramble.yaml'], content(Buffer.from('join: x\n')))
      await fat.write(['bramble', 'packages', 'bramble-agent_1.2.3~rc1+x_arm64.deb'], content(big))
      await fat.write(['bramble', 'empty'], content(Buffer.alloc(0)))
      for (let i = 0; i < 60; i++)
        await fat.write(['bramble', 'packages', `a-rather-long-name-${i}.deb`], content(Buffer.from(`${i}`)))
      await fat.remove(['bramble', 'packages', 'a-rather-long-name-7.deb'])
    })
    check(path)
    t.equal(readByOthers(path, 'cmdline.txt').toString(), 'console=tty1 more\n')
    t.equal(readByOthers(path, 'bramble.yaml').toString(), 'join: x\n')
    t.ok(readByOthers(path, 'bramble/packages/bramble-agent_1.2.3~rc1+x_arm64.deb').equals(big))
    t.equal(readByOthers(path, 'bramble/packages/a-rather-long-name-59.deb').toString(), '59')
    const listed = execFileSync('mdir', ['-i', path, '-b', '::bramble/packages'], { env }).toString()
    t.equal(listed.trim().split('\n').length, 60)
    t.match(
      execFileSync('mdir', ['-i', path, '::cmdline.txt'], { env }).toString(),
      /^CMDLINE +TXT/m,
      'its short name is that which firmware reads',
    )
    t.match(execFileSync('mdir', ['-i', path, '::bramble.yaml'], { env }).toString(), /2026-11-29 +12:34/)
    await withFat(path, async (fat) => {
      t.equal(String(await fat.read(['bramble', 'packages', 'a-rather-long-name-59.deb'], 9)), '59')
      await fat.remove(['bramble'])
      await fat.remove(['bramble.yaml'])
    })
    check(path)
    t.equal(execFileSync('mdir', ['-i', path, '-b', '::'], { env }).toString().trim(), '::/overlays/\n::/cmdline.txt')
  })
}

test('a partition that becomes full keeps what was there', async (t) => {
  const path = await madeFat(t, 8 * 2 ** 20, ['-F', '16', '-s', '1'])
  await withFat(path, async (fat) => {
    await fat.write(['there'], content(Buffer.from('there')))
    await t.rejects(
      fat.write(['big'], content(Buffer.alloc(9 * 2 ** 20))),
      /The boot partition is full: 9437184 bytes are needed/,
    )
    await fat.write(['after'], content(Buffer.from('after')))
  })
  check(path)
  t.equal(readByOthers(path, 'there').toString() + readByOthers(path, 'after').toString(), 'thereafter')
})

test('any order of writes and removals gives a FAT that fsck.vfat finds whole, with what was written last', async (t) => {
  for (const [seed, options] of [
    [11, ['-F', '16']],
    [12, ['-F', '32', '-s', '1']],
  ] as const) {
    const path = await madeFat(t, 40 * 2 ** 20, options)
    const random = seededRandom(seed)
    const pick = (count: number) => Math.floor(random() * count)
    const model = new Map<string, string>()
    await withFat(path, async (fat) => {
      for (let step = 0; step < 400; step++) {
        const folder = [[], ['bramble'], ['bramble', 'packages']][pick(3)] ?? []
        const name =
          ['A.TXT', 'b', `long name ${pick(30)}.deb`.replaceAll(' ', '-'), `x${pick(9)}.conf.d`][pick(4)] ?? ''
        const shown = [...folder, name].join('/')
        if (pick(3) === 0) {
          await fat.remove([...folder, name])
          model.delete(shown)
        } else {
          const text = 'x'.repeat(pick(5000)) + step
          await fat.write([...folder, name], content(Buffer.from(text)))
          model.set(shown, text)
        }
      }
    })
    check(path)
    for (const [name, text] of model) t.equal(readByOthers(path, name).toString(), text, name)
    t.ok((await readFile(path)).length > 0)
  }
})
