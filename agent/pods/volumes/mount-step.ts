/** What the kubelet calls the placing of a volume that failed. */
export const setUpFailed = 'MountVolume.SetUp failed'
