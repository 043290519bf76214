import { test } from 'tap'
import { madeFat } from '../../testing/made-card.ts'
import { clusterStart, type Geometry, readGeometry } from './geometry.ts'

const read = (fat: Buffer, size = fat.length) => readGeometry(fat.subarray(0, 512), size)
const put = (fat: Buffer, at: number, value: number, bytes: 1 | 2 | 4) => {
  fat.writeUIntLE(value, at, bytes)
  return fat
}

test('the places of a FAT32', async (t) => {
  const geometry = read(madeFat({ clusters: 5000, sectorsPerCluster: 4 }))
  t.same(geometry, {
    width: 32,
    sectorBytes: 512,
    clusterBytes: 2048,
    tableStart: 32 * 512,
    tableBytes: 40 * 512,
    tables: 2,
    root: { cluster: 2 },
    dataStart: 112 * 512,
    clusters: 5000,
    infoStart: 512,
  })
  t.equal(clusterStart(geometry as Geometry, 2), 112 * 512)
  t.equal(clusterStart(geometry as Geometry, 4), 120 * 512)
})

test('the places of a FAT16', async (t) => {
  t.same(read(madeFat({ width: 16, clusters: 5000 })), {
    width: 16,
    sectorBytes: 512,
    clusterBytes: 512,
    tableStart: 512,
    tableBytes: 20 * 512,
    tables: 2,
    root: { start: 41 * 512, size: 512 * 32 },
    dataStart: 73 * 512,
    clusters: 5000,
    infoStart: undefined,
  })
  const small = put(put(madeFat({ width: 16, clusters: 5000 }), 32, 0, 4), 19, 5073, 2)
  t.match(read(small), { clusters: 5000 }, 'with its size in the older field')
})

test('a first sector that is damaged or lies is refused with the reason', async (t) => {
  const wide = () => madeFat()
  const narrow = () => madeFat({ width: 16 })
  for (const [fat, reason] of [
    [put(wide(), 510, 0, 2), /no signature/],
    [put(wide(), 11, 0, 2), /sectors of 0 bytes/],
    [put(wide(), 11, 513, 2), /sectors of 513 bytes/],
    [put(wide(), 11, 8192, 2), /sectors of 8192 bytes/],
    [put(wide(), 13, 0, 1), /clusters of 0 bytes/],
    [put(wide(), 13, 3, 1), /clusters of 1536 bytes/],
    [put(put(wide(), 11, 4096, 2), 13, 32, 1), /clusters of 131072 bytes/],
    [put(wide(), 14, 0, 2), /no table/],
    [put(wide(), 16, 0, 1), /no table/],
    [put(wide(), 16, 5, 1), /no table/],
    [put(wide(), 36, 0, 4), /no table/],
    [put(wide(), 32, 0xffffffff, 4), /claims 2199023255040 bytes of a partition of/],
    [put(wide(), 32, 100, 4), /no room beside its tables/],
    [put(wide(), 36, 0x7fffffff, 4), /no room beside its tables/],
    [put(wide(), 36, 10, 4), /table is too short for 50\d\d clusters/],
    [put(wide(), 17, 512, 2), /root directory of FAT16 with a table of FAT32/],
    [put(wide(), 40, 0x80, 2), /tables are not copies/],
    [put(wide(), 42, 1, 2), /version that is not known/],
    [put(wide(), 44, 1, 4), /root directory is in cluster 1$/],
    [put(wide(), 44, 5002, 4), /root directory is in cluster 5002$/],
    [put(narrow(), 17, 0, 2), /no root directory/],
    [madeFat({ width: 16, clusters: 4084 }), /is a FAT12/],
  ] as const) {
    t.match(read(fat), reason)
  }
  t.match(readGeometry(Buffer.alloc(511), 511), /shorter than a sector/)
  t.match(read(wide(), wide().length - 1), /claims \d+ bytes of a partition of/)
  t.match(read(put(wide(), 44, 5001, 4)), { root: { cluster: 5001 } }, 'the last cluster')
  t.match(read(put(wide(), 48, 32, 2)), { infoStart: undefined }, 'a sector beyond the reserved ones has no count')
})

test('a table that would take the memory of the machine is refused', async (t) => {
  const fat = put(put(madeFat(), 36, 200_000, 4), 32, 40_000_000, 4)
  t.match(read(fat, 40_000_000 * 512), /has a FAT of 102400000 bytes; the limit is 67108864/)
})
