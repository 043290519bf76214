import { test } from 'tap'
import { boardRow } from './board-report.ts'

const system = { osImage: 'Debian GNU/Linux 13', kernelVersion: '6.12', architecture: 'arm64', version: '0.1.0' }

test('a machine is a row of the table, without what identifies it', async (t) => {
  const row = boardRow(
    {
      ...{ model: 'Raspberry Pi 4 Model B Rev 1.5', revision: 'c03115', board: '4B 1.5' },
      ...{ bootloaderDate: '2023-01-11', supplyMilliamps: 5000 },
      disks: [{ name: 'mmcblk0', kind: 'SD', bytes: 32 * 2 ** 30, model: 'A|B', made: '03/2021' }],
      links: [
        { name: 'eth0', isWireless: false, driver: 'bcmgenet', megabits: 1000 },
        { name: 'wlan0', isWireless: true, driver: 'brcmfmac' },
      ],
    },
    system,
  )
  t.equal(
    row,
    '| Raspberry Pi 4 Model B Rev 1.5 (c03115) | Debian GNU/Linux 13, 6.12, arm64 | 2023-01-11 | 5000 mA | ' +
      'SD A/B 32 GiB 03/2021 | eth0 bcmgenet 1000 Mbit/s; wlan0 brcmfmac Wi-Fi | 0.1.0 |  |\n',
  )
})

test('a machine that shows nothing is a row, too', async (t) => {
  const row = boardRow({ disks: [], links: [] }, system)
  t.equal(row, '| unknown board | Debian GNU/Linux 13, 6.12, arm64 |  |  |  |  | 0.1.0 |  |\n')
})
