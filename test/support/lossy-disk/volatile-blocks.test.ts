import { closeSync, ftruncateSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { blockBytes, volatileBlocks } from './volatile-blocks.ts'

const count = 64

function disk(t: Test, random: () => number) {
  const path = join(testFolder(t), 'medium')
  const file = openSync(path, 'w+')
  t.teardown(() => closeSync(file))
  ftruncateSync(file, count * blockBytes)
  const blocks = volatileBlocks(file, count * blockBytes, random)
  const filled = (value: number, length = blockBytes) => Buffer.alloc(length, value)
  const onMedium = () => Array.from({ length: count }, (_, block) => readFileSync(path)[block * blockBytes] ?? 0)
  return { blocks, filled, onMedium }
}

test('what was flushed survives a loss of power, and only a part of the rest does', async (t) => {
  const { blocks, filled, onMedium } = disk(t, seededRandom(1))
  blocks.write(0, filled(1, count * blockBytes))
  blocks.flush()
  blocks.write(0, filled(2, count * blockBytes))
  blocks.losePower()
  blocks.write(0, filled(3, count * blockBytes))
  blocks.flush()
  const newer = onMedium().filter((value) => value === 2).length
  t.same([...new Set(onMedium())].sort(), [1, 2])
  t.ok(newer > 5 && newer < count / 2, `${newer} of ${count} blocks were on the medium without a flush`)
  t.same(blocks.read(0, count * blockBytes), filled(3, count * blockBytes), 'it can still be read')
})

test('reads return what was last written, at any offset and length', async (t) => {
  const random = seededRandom(2)
  const { blocks } = disk(t, random)
  const model = Buffer.alloc(count * blockBytes)
  for (let step = 1; step <= 2_000; step++) {
    const offset = Math.floor(random() * count * blockBytes)
    const bytes = Math.min(model.length - offset, 1 + Math.floor(random() * 3 * blockBytes))
    if (random() < 0.5) {
      blocks.write(offset, Buffer.alloc(bytes, step))
      model.fill(step, offset, offset + bytes)
    }
    if (random() < 0.05) blocks.flush()
    if (!blocks.read(offset, bytes).equals(model.subarray(offset, offset + bytes))) t.fail(`step ${step}`)
  }
  blocks.flush()
  t.same(blocks.read(0, model.length), model)
  t.equal(blocks.read(model.length - 10, 100).length, 10, 'the end of the disk')
  t.throws(() => blocks.write(model.length - 10, Buffer.alloc(11)), /of 262144/)
})
