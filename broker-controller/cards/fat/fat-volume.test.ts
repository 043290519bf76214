import { test } from 'tap'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { madeFat, putFiles } from '../../testing/made-card.ts'
import { memoryDisk } from '../../testing/memory-disk.ts'
import { FatVolume } from './fat-volume.ts'
import { type Geometry, readGeometry } from './geometry.ts'

const open = (fat: Buffer) => FatVolume.open(memoryDisk(fat), Date.UTC(2026, 10, 29))
const content = (text: string | Uint8Array) => ({ size: text.length, chunks: [Buffer.from(text)] })
const link32 = (fat: Buffer, cluster: number, to: number) => fat.writeUInt32LE(to, 32 * 512 + cluster * 4)
/** Where the first entry of the root directory is: after its long name, of one entry. */
const firstEntry = (fat: Buffer) => dataStart(fat) + 32
function dataStart(fat: Buffer): number {
  return (readGeometry(fat.subarray(0, 512), fat.length) as Geometry).dataStart
}

for (const width of [16, 32] as const) {
  test(`files of a FAT${width} are read as they were written, by names in any case`, async (t) => {
    const fat = await putFiles(madeFat({ width }), {
      'a.txt': 'first',
      'folder/deep/long-name.yaml': 'second',
      empty: '',
    })
    const volume = await open(fat)
    t.same(await volume.list([]), ['a.txt', 'folder', 'empty'])
    t.same(await volume.list(['FOLDER', 'Deep']), ['long-name.yaml'])
    t.equal(await volume.list(['none']), undefined)
    t.equal(await volume.list(['a.txt']), undefined)
    t.equal(String(await volume.read(['A.TXT'], 5)), 'first')
    t.equal(String(await volume.read(['folder', 'deep', 'LONG-name.yaml'], 99)), 'second')
    t.equal(String(await volume.read(['empty'], 0)), '')
    t.equal(await volume.read(['none'], 9), undefined)
    t.equal(await volume.read(['folder'], 9), undefined)
    await t.rejects(volume.read(['a.txt'], 4), /a\.txt of the boot partition has 5 bytes; the limit is 4/)
  })

  test(`a FAT${width} that is written and emptied has as much room as before, and both tables are alike`, async (t) => {
    const fat = madeFat({ width })
    const free = async () => {
      const big = { size: 2_400_000, chunks: [Buffer.alloc(2_400_000)] }
      const volume = await open(Buffer.from(fat))
      await volume.write(['big'], big)
    }
    await putFiles(fat, { 'bramble/a': 'x'.repeat(200_000), 'bramble/b/c': 'y' })
    const volume = await open(fat)
    await volume.write(['bramble', 'a'], content('short'))
    await volume.remove(['bramble'])
    await volume.remove(['bramble'])
    await volume.flush()
    t.same(await volume.list([]), [])
    await t.resolves(free())
    const { tableStart, tableBytes } = readGeometry(fat.subarray(0, 512), fat.length) as Geometry
    const table = (copy: number) => fat.subarray(tableStart + copy * tableBytes, tableStart + (copy + 1) * tableBytes)
    t.ok(table(0).equals(table(1)))
    if (width === 32) t.equal(fat.readUInt32LE(512 + 488), 4999, 'the count of free clusters')
  })
}

test('nothing outside of what is written changes', async (t) => {
  const before = await putFiles(madeFat(), { 'kernel8.img': 'k'.repeat(5000), 'a.txt': 'a' })
  const fat = Buffer.from(before)
  await putFiles(fat, { 'b.txt': 'b' })
  const changed = new Set<number>()
  for (let i = 0; i < fat.length; i++) if (fat[i] !== before[i]) changed.add(Math.floor(i / 512))
  t.same([...changed], [1, 32, 72, 112, 124], 'the count, a sector of each table, the directory, the content')
})

test('a folder grows, and the root of a FAT16 cannot', async (t) => {
  const names = Array.from({ length: 300 }, (_, i) => `a-name-that-needs-three-entries-${i}`)
  const files = Object.fromEntries(names.map((name) => [`f/${name}`, name]))
  const volume = await open(await putFiles(madeFat({ width: 16 }), files))
  t.same(await volume.list(['f']), names)
  const full = open(madeFat({ width: 16 })).then(async (one) => {
    for (const name of names) await one.write([name], content(''))
  })
  await t.rejects(full, /root directory of the boot partition is full/)
})

test('a file that changes its size meanwhile, a folder in the place of a file and names that are paths are refused', async (t) => {
  const volume = await open(await putFiles(madeFat(), { 'folder/a': 'a', file: 'f' }))
  const write = (path: readonly string[], size: number, text: string) =>
    volume.write(path, { size, chunks: [Buffer.from(text)] })
  await t.rejects(write(['x'], 3, 'four'), /x has 4 bytes and not the 3 that it had/)
  await t.rejects(write(['x'], 5, 'four'), /x has 4 bytes and not the 5 that it had/)
  await t.rejects(write(['x'], 3, 'f'.repeat(2000)), /x is longer than the 3 bytes/)
  await t.rejects(write(['folder'], 1, 'x'), /folder of the boot partition is a folder/)
  await t.rejects(write(['file', 'a'], 1, 'x'), /file of the boot partition is a file/)
  await t.rejects(write(['..', 'a'], 1, 'x'), /"\.\." cannot be a name/)
  await t.rejects(write(['a/b'], 1, 'x'), /"a\/b" cannot be a name/)
})

test('chains that loop, leave the table or are too short end with the reason', async (t) => {
  const made = () => putFiles(madeFat(), { 'a.txt': 'a'.repeat(1500) })
  const loop = await made()
  link32(loop, 5, 3)
  t.equal(
    (await (await open(loop)).read(['a.txt'], 9999).catch(String))?.toString(),
    'Error: The FAT of the boot partition is damaged: a chain does not end after 5000 clusters',
  )
  const outside = await made()
  link32(outside, 3, 5002)
  await t.rejects((await open(outside)).read(['a.txt'], 9999), /leads to cluster 5002 of 5000/)
  const freed = await made()
  link32(freed, 4, 0)
  await t.rejects((await open(freed)).read(['a.txt'], 9999), /leads to cluster 0 of 5000/)
  const bad = await made()
  link32(bad, 3, 0x0ffffff7)
  await t.rejects((await open(bad)).read(['a.txt'], 9999), /leads to cluster 268435447 of 5000/)
  const short = await made()
  link32(short, 3, 0x0fffffff)
  await t.rejects((await open(short)).read(['a.txt'], 9999), /a\.txt is shorter than its size/)
  const root = await made()
  link32(root, 2, 2)
  await t.rejects((await open(root)).list([]), /a chain does not end after 4096 clusters/)
})

test('a folder in itself is not removed for ever', async (t) => {
  const fat = await putFiles(madeFat(), { 'f/g/a': 'a' })
  const entry = firstEntry(fat)
  const own = fat.readUInt16LE(entry + 26)
  const inside = dataStart(fat) + (own - 2) * 512
  fat.writeUInt16LE(own, inside + 3 * 32 + 26) // g, after `.`, `..` and its long name, is f.
  await t.rejects((await open(fat)).remove(['f']), /folders 16 deep/)
})

test('no bytes make it hang, read beyond the partition or fail without a sentence', async (t) => {
  const random = seededRandom(37)
  const whole = await putFiles(madeFat(), {
    'cmdline.txt': 'c',
    'folder/deep/file': 'f'.repeat(3000),
    'a-long-name.yaml': 'y',
  })
  const places = [0, 32 * 512, 72 * 512, dataStart(whole)]
  for (let round = 0; round < 500; round++) {
    const fat = Buffer.from(whole)
    for (let i = 0; i < 1 + random() * 20; i++) {
      const place = places[Math.floor(random() * places.length)] ?? 0
      fat[place + Math.floor(random() * 700)] = Math.floor(random() * 256)
    }
    try {
      const volume = await open(fat)
      await volume.list(['folder', 'deep'])
      await volume.read(['cmdline.txt'], 4096)
      await volume.write(['bramble', 'x.yaml'], content('x'))
      await volume.remove(['folder'])
      await volume.flush()
    } catch (error) {
      t.match(error, { message: /boot partition/ }, `round ${round}: ${error}`)
    }
  }
})
