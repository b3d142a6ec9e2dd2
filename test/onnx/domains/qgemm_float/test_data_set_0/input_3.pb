BbJý
%÷<€DHÿJÝ™ùYùOIX@4Uÿ“BJ