/** The list of images with which Raspberry Pi Imager writes a card. Pure. The source of the fields: raspberrypi/rpi-imager, doc/json-schema. */
import type { InitFormat } from './card-form.ts'

export type ListedImage = {
  readonly name: string
  /** `file://` or `https://`. */
  readonly url: string
  readonly initFormat: InitFormat
  /** Size of the image and its digest in hexadecimal, and the size of the file. */
  readonly size: number
  /** undefined: Imager does not compare the image, and keeps no copy of it. */
  readonly sha256?: string
  readonly fileSize: number
  readonly madeMs: number
}

/** Name in this list only: it offers one kind of board. */
const deviceTag = 'bramble-arm64'

/**
 * Without a list Imager 2 offers no settings (Wi-Fi, user, SSH) for an image, because it cannot see in which form the image takes them
 * (doc/os_customisation_formats.md).
 */
export function imagerManifest(images: readonly ListedImage[]): string {
  const device = {
    name: 'Raspberry Pi (64-bit)',
    description: 'Raspberry Pi 3, 4, 5, 400, 500, Zero 2 W, Compute Module 3 and later',
    tags: [deviceTag],
    default: true,
    matching_type: 'exclusive',
    architecture: 'armv8',
  }
  return `${JSON.stringify({ imager: { devices: [device] }, os_list: images.map(listed) }, undefined, 2)}\n`
}

function listed({ name, url, initFormat, size, sha256, fileSize, madeMs }: ListedImage) {
  return {
    name,
    description: 'Joins the Bramble fleet for which the image was made, at its first boot',
    icon: 'icons/use_custom.png',
    url,
    extract_size: size,
    extract_sha256: sha256 ?? '',
    image_download_size: fileSize,
    release_date: new Date(madeMs).toISOString().slice(0, 10),
    init_format: initFormat,
    devices: [deviceTag],
    architecture: 'armv8',
  }
}
