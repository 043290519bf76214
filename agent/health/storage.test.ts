import { test } from 'tap'
import { type FlashDevice, storageWear, storageWearCheck } from './storage.ts'

const device = (lifeTime: readonly number[], preEndOfLife?: number, name = 'mmcblk0'): FlashDevice => ({
  ...{ name, lifeTime, preEndOfLife },
})

test('a device that does not report its wear shows nothing', async (t) => {
  for (const devices of [[], [device([])], [device([0, 0], 0)]]) t.equal(storageWear(devices), undefined)
  t.equal(
    storageWearCheck.look({ flash: () => [] }, { settings: { highTemperatureCelsius: undefined }, wasWrong: false }),
    undefined,
  )
})

test('the worse of its parts counts, and each step is 10 % of its life', async (t) => {
  const cases: readonly (readonly [FlashDevice, 'True' | 'False', string, string])[] = [
    [device([1, 0], 0), 'False', 'StorageNotWorn', 'up to 10 % of its life'],
    [device([1, 9], 1), 'False', 'StorageNotWorn', 'up to 90 % of its life'],
    [device([], 1), 'False', 'StorageNotWorn', 'an unknown part of its life'],
    [device([10, 1], 1), 'True', 'StorageWorn', 'up to 100 % of its life'],
    [device([11, 1], 1), 'True', 'StorageAtEndOfLife', 'more than the whole of its life'],
    [device([2, 2], 2), 'True', 'StorageWorn', 'up to 20 % of its life, 80 % of its spare blocks'],
    [device([2, 2], 3), 'True', 'StorageAtEndOfLife', 'up to 20 % of its life, 90 % of its spare blocks'],
    [device([0, 0], 2), 'True', 'StorageWorn', 'an unknown part of its life, 80 % of its spare blocks'],
  ]
  for (const [one, status, reason, found] of cases)
    t.match(storageWear([one]), { status, reason, found: `mmcblk0 has used ${found}` })
})

test('a worn device is to be replaced, and those that are not are not named', async (t) => {
  const [well, worn, gone] = [device([1], 1, 'sda'), device([10], 1, 'mmcblk0'), device([11], 1, 'mmcblk1')]
  t.equal(storageWear([well])?.remedy, undefined)
  t.match(storageWear([well, worn]), {
    found: 'mmcblk0 has used up to 100 % of its life',
    remedy: 'Replace it soon',
  })
  t.match(storageWear([worn, well, gone]), {
    found: 'mmcblk0 has used up to 100 % of its life; mmcblk1 has used more than the whole of its life',
    remedy: 'Replace it now, and save what is on it first',
  })
  t.match(storageWear([well, device([2], 1)])?.found, /^sda has used .*; mmcblk0 has used/, 'all that are well')
})
