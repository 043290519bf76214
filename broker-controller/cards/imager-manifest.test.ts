import { test } from 'tap'
import { imagerManifest } from './imager-manifest.ts'

const image = {
  name: 'Raspberry Pi OS for fleet.example',
  url: 'file:///srv/card.img.xz',
  initFormat: 'cloudinit-rpi',
  size: 2_900_000_000,
  sha256: 'a'.repeat(64),
  fileSize: 500_000_000,
  madeMs: Date.UTC(2026, 10, 29),
} as const

test('the list has every field that its schema requires, and the form in which the image takes settings', async (t) => {
  const list = JSON.parse(imagerManifest([image]))
  t.same(Object.keys(list), ['imager', 'os_list'])
  t.match(list.os_list, [
    {
      name: 'Raspberry Pi OS for fleet.example',
      description: String,
      icon: String,
      url: 'file:///srv/card.img.xz',
      extract_size: 2_900_000_000,
      extract_sha256: 'a'.repeat(64),
      image_download_size: 500_000_000,
      release_date: '2026-11-29',
      init_format: 'cloudinit-rpi',
    },
  ])
})

test('the board that it offers is the one of its image: Imager hides images of other boards', async (t) => {
  const { imager, os_list } = JSON.parse(imagerManifest([image]))
  t.match(imager.devices, [{ name: String, description: String, default: true }])
  t.same(os_list[0].devices, imager.devices[0].tags)
})

test('an image without a digest has an empty one, with which Imager does not compare it', (t) => {
  const { sha256: _, ...rest } = image
  const { os_list } = JSON.parse(imagerManifest([image, rest]))
  t.match(os_list, [{ extract_sha256: 'a'.repeat(64) }, { extract_sha256: '' }])
  t.end()
})
