/* SPDX-License-Identifier: GPL-2.0 */
/* What a random program may do next, see soak.c. */
#ifndef NTCOPY_ACTS_H
#define NTCOPY_ACTS_H

#include "scene.h"

/* Plays one random program on the scene's family. */
void scene_random(struct scene *scene);

#endif /* NTCOPY_ACTS_H */
