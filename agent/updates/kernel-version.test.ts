import { test } from 'tap'
import { newerKernel } from './kernel-version.ts'

const rows: { readonly [sentence: string]: readonly [string, readonly string[], string | undefined] } = {
  'the running kernel alone': ['6.1.0-28-amd64', ['6.1.0-28-amd64'], undefined],
  'a newer ABI of Debian 12': ['6.1.0-28-amd64', ['6.1.0-28-amd64', '6.1.0-29-amd64'], '6.1.0-29-amd64'],
  'numbers, not digits': ['6.1.0-9-amd64', ['6.1.0-10-amd64', '6.1.0-9-amd64'], '6.1.0-10-amd64'],
  'the newest of several': [
    '6.12.43+deb13-arm64',
    ['6.12.48+deb13-arm64', '6.12.57+deb13-arm64'],
    '6.12.57+deb13-arm64',
  ],
  'older ones stay installed': ['6.12.48+deb13-arm64', ['6.12.43+deb13-arm64', '6.12.48+deb13-arm64'], undefined],
  'another flavour is for another board': ['6.12.47+rpt-rpi-v8', ['6.12.62+rpt-rpi-2712'], undefined],
  'a kernel of Raspberry Pi OS': ['6.12.47+rpt-rpi-v8', ['6.12.62+rpt-rpi-v8'], '6.12.62+rpt-rpi-v8'],
  'a cloud kernel beside the usual one': ['6.1.0-28-amd64', ['6.1.0-29-cloud-amd64'], undefined],
  'a kernel of Ubuntu': ['5.15.0-130-generic', ['5.15.0-131-generic'], '5.15.0-131-generic'],
  'a kernel of its own': ['6.6.1', ['6.6.2'], undefined],
  'names that are not versions': ['6.1.0-28-amd64', ['', 'old', '6.1.0-29-', '9'.repeat(99)], undefined],
  'no kernel is installed, as in a container': ['6.1.0-28-amd64', [], undefined],
}
for (const [sentence, [running, installed, expected]] of Object.entries(rows))
  test(`newer kernel: ${sentence}`, async (t) => {
    t.equal(newerKernel(running, installed), expected)
  })
